// SPDX-License-Identifier: Apache-2.0
//
// The residual add against the memory's rate.
#include <vector>

#include "bench/harness.h"
#include "kernels/residual_add/residual_add.h"

namespace lockstep::kernels {
namespace {

LOCKSTEP_BENCH(residual_add, "residual add, against the memory's rate", b) {
  constexpr int64_t kCount = int64_t{32} << 20;  // 64 MiB a tensor: outside the cache
  std::vector<BFloat16> x(kCount, BFloat16{0x3f80});
  std::vector<BFloat16> y(kCount, BFloat16{0x3f80});
  std::vector<BFloat16> out(kCount);
  const ResidualAddArgs args = {.out = out.data(), .x = x.data(), .y = y.data(), .count = kCount};
  b.CompareWithMemory("bf16", 2, 1, kCount * static_cast<int64_t>(sizeof(BFloat16)),
                      [&](const Context& context) { Run(context, args); });
}

}  // namespace
}  // namespace lockstep::kernels
