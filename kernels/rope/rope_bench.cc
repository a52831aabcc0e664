// SPDX-License-Identifier: Apache-2.0
//
// The rotary position embedding against the memory's rate.
#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "kernels/context.h"
#include "kernels/rope/rope.h"

namespace lockstep::kernels {
namespace {

// About 64 MiB a stream: outside the cache.
LOCKSTEP_BENCH(rope, "rotary position embedding, against the memory's rate", b) {
  constexpr int64_t kSequence = 1024;
  constexpr int64_t kHeads = 20;
  for (int64_t d_head : {64, 128}) {
    const int64_t tokens = (int64_t{32} << 20) / (kHeads * d_head);
    const int64_t elements = tokens * kHeads * d_head;
    std::vector<BFloat16> x(elements, BFloat16{0x3fc1});
    std::vector<BFloat16> out(elements);
    std::vector<float> cos(kSequence * d_head / 2);
    std::vector<float> sin(kSequence * d_head / 2);
    BuildRopeTable(500000.0, d_head, kSequence, cos.data(), sin.data());
    b.CompareWithMemory("d_head " + std::to_string(d_head), 1, 1,
                        elements * static_cast<int64_t>(sizeof(BFloat16)),
                        [&](const Context& context) {
                          Run(context, RopeArgs{.out = out.data(),
                                                .x = x.data(),
                                                .cos = cos.data(),
                                                .sin = sin.data(),
                                                .tokens = tokens,
                                                .heads = kHeads,
                                                .d_head = d_head,
                                                .out_stride = kHeads * d_head,
                                                .x_stride = kHeads * d_head,
                                                .sequence = kSequence,
                                                .backward = false});
                        });
  }
}

}  // namespace
}  // namespace lockstep::kernels
