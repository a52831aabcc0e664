// SPDX-License-Identifier: Apache-2.0
//
// SwiGLU for AVX2.
#include "kernels/simd/avx2.h"
#include "kernels/swiglu/swiglu_body.h"

namespace lockstep::kernels {

void SwigluForwardAvx2(const SwigluForwardArgs& args, Range range) {
  SwigluForwardBody<Avx2>(args, range);
}
void SwigluBackwardAvx2(const SwigluBackwardArgs& args, Range range) {
  SwigluBackwardBody<Avx2>(args, range);
}

}  // namespace lockstep::kernels
