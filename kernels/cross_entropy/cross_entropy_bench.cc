// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy in place of the logits against the memory's rate for reading and writing them once.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace lockstep::kernels {
namespace {

LOCKSTEP_BENCH(cross_entropy, "cross-entropy with z-loss, against the memory's rate", b) {
  for (int64_t vocab : {4096, 16384, 128256}) {
    const int64_t rows = (int64_t{32} << 20) / vocab;
    std::vector<float> logits(rows * vocab);
    uint32_t random = 1;
    std::vector<float> loss(rows);
    std::vector<float> z(rows);
    std::vector<int32_t> targets(rows, 7);
    for (float& x : logits) {
      random = random * 1664525u + 1013904223u;
      x = static_cast<float>(random >> 20) * 0x1p-9f;
    }
    for (Isa isa : bench::Bench::Isas()) {
      for (int threads : {1, 2}) {
        const Context context = b.ContextOf(isa, threads);
        const auto run = [&](bool gradient) {
          Run(context, CrossEntropyArgs{.loss = loss.data(),
                                        .z = z.data(),
                                        .logits = logits.data(),
                                        .targets = targets.data(),
                                        .rows = rows,
                                        .vocab = vocab,
                                        .scale = 0x1p-10f,
                                        .z_coefficient = 1e-4f,
                                        .gradient = gradient});
        };
        const std::string name = absl::StrCat(vocab, " ", IsaName(isa), " ", threads, "T");
        const int64_t bytes = rows * vocab * static_cast<int64_t>(sizeof(float));
        b.Compare({.name = "loss only " + name,
                   .unit = "GB/s",
                   .work = static_cast<double>(bytes),
                   .ours = [&] { run(false); },
                   .peer = "memory",
                   .peer_call = b.MemoryPeer(threads, 1, 0, bytes)});
        b.Compare({.name = "gradient " + name,
                   .unit = "GB/s",
                   .work = 2.0 * static_cast<double>(bytes),
                   .ours = [&] { run(true); },
                   .peer = "memory",
                   .peer_call = b.MemoryPeer(threads, 1, 1, bytes)});
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
