// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy for NEON.
#include "kernels/cross_entropy/cross_entropy_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void CrossEntropyNeon(const CrossEntropyArgs& args, Range range) {
  CrossEntropyBody<Neon>(args, range);
}

}  // namespace lockstep::kernels
