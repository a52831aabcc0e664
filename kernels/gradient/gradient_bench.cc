// SPDX-License-Identifier: Apache-2.0
//
// The gradient's elementwise kernels against the memory's rate.
#include <cstdint>
#include <vector>

#include "bench/harness.h"
#include "kernels/context.h"
#include "kernels/gradient/gradient.h"

namespace lockstep::kernels {
namespace {

// About 64 MiB a stream: outside the cache.
LOCKSTEP_BENCH(gradient, "accumulate, add, scale, convert, against the memory's rate", b) {
  constexpr int64_t kCount = int64_t{16} << 20;
  constexpr int64_t kHalfBytes = kCount * static_cast<int64_t>(sizeof(BFloat16));
  std::vector<float> acc(kCount, 1.0f);
  std::vector<float> x(kCount, 0x1p-20f);
  std::vector<BFloat16> half(kCount, BFloat16{0x3f80});
  b.CompareWithMemory("accumulate", 2, 1, 2 * kHalfBytes, [&](const Context& context) {
    Run(context, AccumulateArgs{acc.data(), x.data(), kCount, 0.25f});
  });
  b.CompareWithMemory("add into", 2, 1, 2 * kHalfBytes, [&](const Context& context) {
    Run(context, AddIntoArgs{acc.data(), x.data(), kCount});
  });
  b.CompareWithMemory("scale", 1, 1, 2 * kHalfBytes, [&](const Context& context) {
    Run(context, ScaleArgs{acc.data(), kCount, 1.0f});
  });
  b.CompareWithMemory("f32 to bf16", 2, 1, kHalfBytes, [&](const Context& context) {
    Run(context, ConvertBf16Args{half.data(), acc.data(), kCount});
  });
  b.CompareWithMemory("bf16 to f32", 1, 2, kHalfBytes, [&](const Context& context) {
    Run(context, WidenF32Args{acc.data(), half.data(), kCount});
  });
}

}  // namespace
}  // namespace lockstep::kernels
