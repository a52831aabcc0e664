// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of SwiGLU.
#include "kernels/swiglu/swiglu.h"
#include "kernels/swiglu/swiglu_formula.h"

namespace lockstep::kernels {

void SwigluForwardReference(const SwigluForwardArgs& args, Range range) {
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* gate = args.x + r * 2 * args.width;
    const BFloat16* up = gate + args.width;
    for (int64_t j = 0; j < args.width; ++j) {
      Store(&args.out[r * args.width + j], SwigluOutV<Scalar>(ToFloat(gate[j]), ToFloat(up[j])));
    }
  }
}

void SwigluBackwardReference(const SwigluBackwardArgs& args, Range range) {
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* gate = args.x + r * 2 * args.width;
    const BFloat16* up = gate + args.width;
    BFloat16* dgate = args.dx + r * 2 * args.width;
    BFloat16* dup = dgate + args.width;
    for (int64_t j = 0; j < args.width; ++j) {
      const float dout = ToFloat(args.dout[r * args.width + j]);
      const SwigluSlopes<Scalar> slopes(ToFloat(gate[j]));
      const float through_up = Canon(dout * ToFloat(up[j]));
      Store(&dgate[j], through_up * slopes.derivative);
      Store(&dup[j], dout * slopes.silu);
    }
  }
}

}  // namespace lockstep::kernels
