// SPDX-License-Identifier: Apache-2.0
//
// SwiGLU against the memory's rate.
#include <cstdint>
#include <vector>

#include "bench/harness.h"
#include "kernels/context.h"
#include "kernels/swiglu/swiglu.h"

namespace lockstep::kernels {
namespace {

// About 64 MiB a stream: outside the cache.
LOCKSTEP_BENCH(swiglu, "SwiGLU forward and backward, against the memory's rate", b) {
  constexpr int64_t kWidth = 5632;
  constexpr int64_t kRows = 4096;
  constexpr int64_t kBytes = kRows * kWidth * static_cast<int64_t>(sizeof(BFloat16));
  std::vector<BFloat16> x(kRows * 2 * kWidth);
  std::vector<BFloat16> dx(kRows * 2 * kWidth);
  std::vector<BFloat16> out(kRows * kWidth, BFloat16{0x3e81});
  uint32_t random = 1;
  for (BFloat16& value : x) {
    random = random * 1664525u + 1013904223u;
    Store(&value, (static_cast<float>(random >> 8) * 0x1p-24f - 0.5f) * 12.0f);
  }
  b.CompareWithMemory("forward", 2, 1, kBytes, [&](const Context& context) {
    Run(context, SwigluForwardArgs{out.data(), x.data(), kRows, kWidth});
  });
  b.CompareWithMemory("backward", 3, 2, kBytes, [&](const Context& context) {
    Run(context, SwigluBackwardArgs{dx.data(), out.data(), x.data(), kRows, kWidth});
  });
}

}  // namespace
}  // namespace lockstep::kernels
