// SPDX-License-Identifier: Apache-2.0
//
// Attention, forward and backward, against PyTorch's masked softmax. Work counts the visible pairs
// of query and key: 4 Dh operations each in the forward, 10 Dh in the backward. PyTorch is credited
// with the same work, though its matrices are whole.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness.h"
#include "bench/peer_process.h"
#include "kernels/attention/attention.h"

namespace lockstep::kernels {
namespace {

double VisiblePairs(const AttentionShape& shape) {
  double pairs = 0;
  for (int64_t i = 0; i < shape.tokens; ++i) {
    pairs += static_cast<double>(shape.window > 0 && i >= shape.window ? shape.window : i + 1);
  }
  return pairs * static_cast<double>(shape.batch * shape.query_heads);
}

struct Problem {
  explicit Problem(const AttentionShape& shape)
      : stride((shape.query_heads + 2 * shape.kv_heads) * shape.head_dim),
        qkv(shape.batch * shape.tokens * stride),
        dqkv(qkv.size()),
        out(shape.batch * shape.tokens * shape.query_heads * shape.head_dim),
        dout(out.size()),
        lse(shape.batch * shape.tokens * shape.query_heads) {
    uint32_t state = 1;
    const auto fill = [&](std::vector<BFloat16>& x) {
      for (BFloat16& value : x) {
        state = state * 1664525u + 1013904223u;
        Store(&value, static_cast<float>(static_cast<int32_t>(state)) * 0x1p-30f);
      }
    };
    fill(qkv);
    fill(dout);
    const int64_t kv = shape.query_heads * shape.head_dim;
    const int64_t width = shape.kv_heads * shape.head_dim;
    forward = {.out = out.data(),
               .lse = lse.data(),
               .q = qkv.data(),
               .k = qkv.data() + kv,
               .v = qkv.data() + kv + width,
               .stride = stride,
               .shape = shape,
               .int8_pv = true};
    backward = {.dq = dqkv.data(),
                .dk = dqkv.data() + kv,
                .dv = dqkv.data() + kv + width,
                .gradient_stride = stride,
                .dout = dout.data(),
                .q = forward.q,
                .k = forward.k,
                .v = forward.v,
                .stride = stride,
                .lse = lse.data(),
                .shape = shape};
  }

  int64_t stride;
  std::vector<BFloat16> qkv;
  std::vector<BFloat16> dqkv;
  std::vector<BFloat16> out;
  std::vector<BFloat16> dout;
  std::vector<float> lse;
  AttentionForwardArgs forward;
  AttentionBackwardArgs backward;
};

std::string NameOf(Isa isa, const AttentionShape& shape, int threads) {
  return absl::StrCat(std::string(IsaName(isa)), " Dh", shape.head_dim, " T", shape.tokens,
                      shape.window > 0 ? absl::StrCat(" W", shape.window) : "", " ", threads, "T");
}

// AVX2 at the longer shapes runs alone: the peer's turns there take minutes.
LOCKSTEP_BENCH(attention, "attention forward and backward, against PyTorch's masked softmax", b) {
  for (int threads : {1, 2}) {
    bench::PeerProcess peer(bench::PyTorchCommand("pytorch_attention.py", threads));
    for (int64_t head_dim : {64, 128}) {
      for (int64_t tokens : {512, 1024, 2048, 4096}) {
        const AttentionShape shape = {1, tokens, 8, 2, head_dim, 0};
        Problem problem(shape);
        // Short calls several times a turn, so that a turn is not mostly the warming of caches.
        const int calls = tokens <= 1024 ? 4 : 1;
        const bool has_peer =
            peer.Ask(absl::StrCat("case ", head_dim, " 8 2 ", tokens, " 0")).has_value();
        const auto ask = [&] {
          for (int call = 0; call < calls; ++call) peer.Ask("run");
        };
        bool first = true;
        for (Isa isa : bench::Bench::Isas()) {
          const Context context = b.ContextOf(isa, threads);
          const bool compare = has_peer && (first || tokens <= 1024);
          b.Compare({.name = NameOf(isa, shape, threads),
                     .unit = "GFLOP/s",
                     .work = calls * 14.0 * static_cast<double>(head_dim) * VisiblePairs(shape),
                     .ours =
                         [&] {
                           for (int call = 0; call < calls; ++call) {
                             Run(context, problem.forward);
                             Run(context, problem.backward);
                           }
                         },
                     .peer = compare ? "PyTorch fp32" : "",
                     .peer_call = compare ? std::function<void()>(ask) : nullptr});
          first = false;
        }
      }
    }
  }
}

LOCKSTEP_BENCH(attention_parts, "attention: forward (int8 and f32 P·V) and backward, windows", b) {
  for (int threads : {1, 2}) {
    for (int64_t head_dim : {64, 128}) {
      for (const auto& [tokens, window] :
           {std::pair<int64_t, int64_t>{512, 0}, {4096, 0}, {4096, 512}}) {
        const AttentionShape shape = {1, tokens, 8, 2, head_dim, window};
        Problem problem(shape);
        AttentionForwardArgs forward_f32 = problem.forward;
        forward_f32.int8_pv = false;
        const double work = static_cast<double>(head_dim) * VisiblePairs(shape);
        for (Isa isa : bench::Bench::Isas()) {
          const Context context = b.ContextOf(isa, threads);
          const std::string name = NameOf(isa, shape, threads);
          const auto row = [&](const char* what, double operations, const auto& args) {
            b.Compare({.name = absl::StrCat(name, " ", what),
                       .unit = "GFLOP/s",
                       .work = operations * work,
                       .ours = [&] { Run(context, args); },
                       .peer = "",
                       .peer_call = {}});
          };
          row("forward int8", 4, problem.forward);
          row("forward f32", 4, forward_f32);
          row("backward", 10, problem.backward);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
