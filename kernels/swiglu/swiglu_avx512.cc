// SPDX-License-Identifier: Apache-2.0
//
// SwiGLU for AVX-512.
#include "kernels/simd/avx512.h"
#include "kernels/swiglu/swiglu_body.h"

namespace lockstep::kernels {

void SwigluForwardAvx512(const SwigluForwardArgs& args, Range range) {
  SwigluForwardBody<Avx512>(args, range);
}
void SwigluBackwardAvx512(const SwigluBackwardArgs& args, Range range) {
  SwigluBackwardBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
