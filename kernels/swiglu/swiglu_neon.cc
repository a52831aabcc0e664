// SPDX-License-Identifier: Apache-2.0
//
// SwiGLU for NEON.
#include "kernels/simd/neon.h"
#include "kernels/swiglu/swiglu_body.h"

namespace lockstep::kernels {

void SwigluForwardNeon(const SwigluForwardArgs& args, Range range) {
  SwigluForwardBody<Neon>(args, range);
}
void SwigluBackwardNeon(const SwigluBackwardArgs& args, Range range) {
  SwigluBackwardBody<Neon>(args, range);
}

}  // namespace lockstep::kernels
