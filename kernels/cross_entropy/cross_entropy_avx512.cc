// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy for AVX-512.
#include "kernels/cross_entropy/cross_entropy_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void CrossEntropyAvx512(const CrossEntropyArgs& args, Range range) {
  CrossEntropyBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
