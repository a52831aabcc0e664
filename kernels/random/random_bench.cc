// SPDX-License-Identifier: Apache-2.0
//
// The random fills against the rate at which memory takes writes.
#include <string>
#include <vector>

#include "bench/harness.h"
#include "kernels/random/fill.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kCount = int64_t{32} << 20;  // outside the cache

template <class Args, class T>
void FillRows(bench::Bench& b, const std::string& name, const std::vector<T>&, const Args& args) {
  for (Isa isa : bench::Bench::Isas()) {
    for (int threads : {1, 2}) {
      const Context context = b.ContextOf(isa, threads);
      b.Compare(
          {.name = name + " " + std::string(IsaName(isa)) + " " + std::to_string(threads) + "T",
           .unit = "GB/s",
           .work = static_cast<double>(kCount * sizeof(T)),
           .ours = [&] { Run(context, args); },
           .peer = "memory",
           .peer_call = b.MemoryPeer(threads, 0, 1, kCount * sizeof(T))});
    }
  }
}

LOCKSTEP_BENCH(random_fill, "uniform and truncated normal tensors, against the memory's rate", b) {
  std::vector<float> f32(kCount);
  std::vector<BFloat16> bf16(kCount);
  const RandomSource source = {.seed = 1, .stream = 2};
  FillRows(b, "uniform f32", f32,
           UniformFillArgs{.out = f32.data(), .count = kCount, .source = source});
  FillRows(b, "truncated normal f32", f32,
           TruncatedNormalFillF32Args{
               .out = f32.data(), .count = kCount, .sigma = 0.02f, .source = source});
  FillRows(b, "truncated normal bf16", bf16,
           TruncatedNormalFillBf16Args{
               .out = bf16.data(), .count = kCount, .sigma = 0.02f, .source = source});
}

}  // namespace
}  // namespace lockstep::kernels
