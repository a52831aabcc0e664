// SPDX-License-Identifier: Apache-2.0
//
// Quantisation against the memory's rate for the same bytes, outside the cache.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness.h"
#include "kernels/quantize/dequantize.h"
#include "kernels/quantize/quantize.h"
#include "kernels/quantize/weights.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kRows = 8192;
constexpr int64_t kCols = 4096;
constexpr int64_t kCount = kRows * kCols;

struct Buffers {
  std::vector<BFloat16> bf16 = std::vector<BFloat16>(kCount, BFloat16{0x3f80});
  std::vector<float> f32 = std::vector<float>(kCount, 1.0f);
  std::vector<int8_t> q = std::vector<int8_t>(kCount, 1);
  std::vector<int32_t> product = std::vector<int32_t>(kCount, 3);
  std::vector<float> scale = std::vector<float>(kCount / kCols, 1.0f);
  std::vector<float> other_scale = std::vector<float>(kCount / kCols, 1.0f);
  std::vector<int32_t> clipped = std::vector<int32_t>(kRows);
};

// One row of the table: what is run, and the bytes it reads and writes as halves of kCount
// elements.
void Measure(bench::Bench& b, const std::string& name, int reads, int writes, int64_t bytes_each,
             const std::function<void(const Context&)>& call) {
  for (Isa isa : bench::Bench::Isas()) {
    for (int threads : {1, 2}) {
      const Context context = b.ContextOf(isa, threads);
      b.Compare({.name = absl::StrCat(name, " ", IsaName(isa), " ", threads, "T"),
                 .unit = "GB/s",
                 .work = static_cast<double>(reads + writes) * bytes_each,
                 .ours = [&] { call(context); },
                 .peer = "memory",
                 .peer_call = b.MemoryPeer(threads, reads, writes, bytes_each)});
    }
  }
}

LOCKSTEP_BENCH(quantize, "quantisation and dequantisation, against the memory's rate", b) {
  Buffers d;
  Measure(b, "amax bf16", 1, 0, kCount * 2,
          [&](const Context& context) { Amax(context, d.bf16.data(), kCount); });
  Measure(b, "quantise bf16", 2, 1, kCount, [&](const Context& context) {
    Run(context, QuantizeArgs{.q = d.q.data(), .x = d.bf16.data(), .amax = 2.0f, .count = kCount});
  });
  Measure(b, "quantise f32", 4, 1, kCount, [&](const Context& context) {
    Run(context, QuantizeArgs{.q = d.q.data(), .x = d.f32.data(), .amax = 2.0f, .count = kCount});
  });
  Measure(b, "rows bf16", 2, 1, kCount, [&](const Context& context) {
    Run(context, QuantizeRowsArgs{.q = d.q.data(),
                                  .scale = d.scale.data(),
                                  .x = d.bf16.data(),
                                  .rows = kRows,
                                  .cols = kCols});
  });
  Measure(b, "columns bf16, read twice", 4, 1, kCount, [&](const Context& context) {
    Run(context, QuantizeColumnsArgs{.q = d.q.data(),
                                     .scale = d.scale.data(),
                                     .x = d.bf16.data(),
                                     .rows = kRows,
                                     .cols = kCols});
  });
  Measure(b, "weights bf16", 2, 1, kCount, [&](const Context& context) {
    Run(context, QuantizeWeightsArgs{.q = d.q.data(),
                                     .step = d.scale.data(),
                                     .clipped = d.clipped.data(),
                                     .w = d.bf16.data(),
                                     .rows = kRows,
                                     .cols = kCols});
  });
  Measure(b, "weights f32", 4, 1, kCount, [&](const Context& context) {
    Run(context, QuantizeWeightsArgs{.q = d.q.data(),
                                     .step = d.scale.data(),
                                     .clipped = d.clipped.data(),
                                     .w = d.f32.data(),
                                     .rows = kRows,
                                     .cols = kCols});
  });
  Measure(b, "dequantise int32 to bf16", 2, 1, kCount * 2, [&](const Context& context) {
    Run(context, DequantizeProductArgs{.out = d.bf16.data(),
                                       .p = d.product.data(),
                                       .row_scale = d.scale.data(),
                                       .col_scale = d.other_scale.data(),
                                       .rows = kRows,
                                       .cols = kCols});
  });
  Measure(b, "dequantise int8 to bf16", 1, 2, kCount, [&](const Context& context) {
    Run(context, DequantizeRowsArgs{.out = d.bf16.data(),
                                    .q = d.q.data(),
                                    .scale = d.scale.data(),
                                    .rows = kRows,
                                    .cols = kCols});
  });
}

}  // namespace
}  // namespace lockstep::kernels
