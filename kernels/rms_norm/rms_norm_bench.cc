// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm against the memory's rate.
#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "kernels/rms_norm/rms_norm.h"

namespace lockstep::kernels {
namespace {

// About 64 MiB a stream: outside the cache.
struct Tensors {
  static constexpr int64_t kElements = int64_t{32} << 20;
  static constexpr int64_t kBytes = kElements * static_cast<int64_t>(sizeof(BFloat16));
  std::vector<BFloat16> out = std::vector<BFloat16>(kElements);
  std::vector<BFloat16> x = std::vector<BFloat16>(kElements, BFloat16{0x3fc1});
  std::vector<BFloat16> dy = std::vector<BFloat16>(kElements, BFloat16{0xbf91});
  std::vector<float> rstd;
  std::vector<float> gain;
  int64_t rows;
  int64_t cols;

  explicit Tensors(int64_t columns)
      : rstd(kElements / columns, 0.5f),
        gain(columns, 1.1f),
        rows(kElements / columns),
        cols(columns) {
    for (int64_t i = 0; i < kElements; i += 3) x[i].bits ^= 0x80f3;
  }
};

LOCKSTEP_BENCH(rms_norm, "RMSNorm forward and backward, against the memory's rate", b) {
  for (int64_t cols : {2048, 128}) {
    Tensors t(cols);
    const std::string shape = " " + std::to_string(t.rows) + " x " + std::to_string(cols);
    const float inverse = RmsNormInverse(cols);
    b.CompareWithMemory("forward" + shape, 1, 1, t.kBytes, [&](const Context& context) {
      Run(context, RmsNormForwardArgs{t.out.data(), t.rstd.data(), t.x.data(), t.gain.data(),
                                      t.rows, 1, cols, cols, cols, inverse, 1e-5f});
    });
    b.CompareWithMemory("forward, no gain" + shape, 1, 1, t.kBytes, [&](const Context& context) {
      Run(context, RmsNormForwardArgs{t.out.data(),
                                      t.rstd.data(),
                                      t.x.data(),
                                      {},
                                      t.rows,
                                      1,
                                      cols,
                                      cols,
                                      cols,
                                      inverse,
                                      1e-5f});
    });
    b.CompareWithMemory("backward" + shape, 2, 1, t.kBytes, [&](const Context& context) {
      Run(context, RmsNormBackwardArgs{t.out.data(), t.dy.data(), t.x.data(), t.rstd.data(),
                                       t.gain.data(), t.rows, 1, cols, cols, cols, cols, inverse});
    });
    std::vector<float> dgain(cols);
    b.CompareWithMemory("gain gradient" + shape, 2, 0, t.kBytes, [&](const Context& context) {
      RmsNormGainGradient(
          context, RmsNormGainGradientArgs{dgain.data(), t.dy.data(), t.x.data(), t.rstd.data(),
                                           t.rows, 1, cols, cols, cols});
    });
  }
}

}  // namespace
}  // namespace lockstep::kernels
