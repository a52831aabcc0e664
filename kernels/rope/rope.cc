// SPDX-License-Identifier: Apache-2.0
//
// The tables of the rotary position embedding.
#include "kernels/rope/rope.h"

#include "kernels/math/host64.h"

namespace lockstep::kernels {

void BuildRopeTable(double theta, int64_t d_head, int64_t positions, float* cos, float* sin) {
  const int64_t half = d_head / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double frequency =
        Pow64(theta, -(2.0 * static_cast<double>(i)) / static_cast<double>(d_head));
    for (int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      Store(&cos[p * half + i], static_cast<float>(Cos64(angle)));
      Store(&sin[p * half + i], static_cast<float>(Sin64(angle)));
    }
  }
}

}  // namespace lockstep::kernels
