// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy for AVX2.
#include "kernels/cross_entropy/cross_entropy_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void CrossEntropyAvx2(const CrossEntropyArgs& args, Range range) {
  CrossEntropyBody<Avx2>(args, range);
}

}  // namespace lockstep::kernels
