// SPDX-License-Identifier: Apache-2.0
//
// AdamW against the memory's rate.
#include <cstdint>
#include <vector>

#include "bench/harness.h"
#include "kernels/adamw/adamw.h"
#include "kernels/context.h"

namespace lockstep::kernels {
namespace {

// About 64 MiB a stream: outside the cache.
LOCKSTEP_BENCH(adamw, "AdamW, one fused pass, against the memory's rate", b) {
  constexpr int64_t kCount = int64_t{16} << 20;
  std::vector<float> p(kCount, 0.5f);
  std::vector<BFloat16> p_bf16(kCount, BFloat16{0x3f00});
  std::vector<float> m(kCount, 0.01f);
  std::vector<float> v(kCount, 0.001f);
  std::vector<float> g(kCount, 0.02f);
  AdamWArgs args = {.p_f32 = p.data(),
                    .p_bf16 = nullptr,
                    .m = m.data(),
                    .v = v.data(),
                    .g = g.data(),
                    .count = kCount,
                    .scalars = AdamWScalarsAt(10, 1e-6, 0.9, 0.95, 1e-8, 0.1),
                    .clip_scale = 0.9f};
  // The peer has four streams to read and three to write, and as many bytes in all.
  const auto each = [](int64_t bytes_per_element) { return kCount * bytes_per_element / 7; };
  const auto run = [&](const Context& context) { Run(context, args); };
  b.CompareWithMemory("f32 parameters", 4, 3, each(28), run);
  args.p_bf16 = p_bf16.data();
  b.CompareWithMemory("f32 parameters and a bf16 copy", 4, 3, each(30), run);
  args.p_f32 = nullptr;
  b.CompareWithMemory("bf16 parameters", 4, 3, each(24), run);
}

}  // namespace
}  // namespace lockstep::kernels
