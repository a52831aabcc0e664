// SPDX-License-Identifier: Apache-2.0
//
// The residual add against the memory's rate.
#include <string>
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
  for (Isa isa : bench::Bench::Isas()) {
    for (int threads : {1, 2}) {
      const Context context = b.ContextOf(isa, threads);
      b.Compare({.name = std::string(IsaName(isa)) + " " + std::to_string(threads) + "T",
                 .unit = "GB/s",
                 .work = 3.0 * kCount * sizeof(BFloat16),
                 .ours = [&] { Run(context, args); },
                 .peer = "memory",
                 .peer_call = b.MemoryPeer(threads, 2, 1, kCount * sizeof(BFloat16))});
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
