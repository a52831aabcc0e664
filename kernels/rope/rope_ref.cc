// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the rotary position embedding.
#include "kernels/rope/rope.h"

namespace lockstep::kernels {

void RopeReference(const RopeArgs& args, Range range) {
  const int64_t half = args.d_head / 2;
  for (int64_t t = range.begin; t < range.end; ++t) {
    const float* cos = args.cos + t % args.sequence * half;
    const float* sin = args.sin + t % args.sequence * half;
    for (int64_t h = 0; h < args.heads; ++h) {
      const BFloat16* x = args.x + t * args.x_stride + h * args.d_head;
      BFloat16* out = args.out + t * args.out_stride + h * args.d_head;
      for (int64_t i = 0; i < half; ++i) {
        const float s = args.backward ? -sin[i] : sin[i];
        const float x1 = ToFloat(x[i]);
        const float x2 = ToFloat(x[half + i]);
        Store(&out[i], Fma(x1, cos[i], -Canon(x2 * s)));
        Store(&out[half + i], Fma(x2, cos[i], Canon(x1 * s)));
      }
    }
  }
}

}  // namespace lockstep::kernels
