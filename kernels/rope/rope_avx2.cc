// SPDX-License-Identifier: Apache-2.0
//
// The rotary position embedding for AVX2.
#include "kernels/rope/rope_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void RopeAvx2(const RopeArgs& args, Range range) { RopeBody<Avx2>(args, range); }

}  // namespace lockstep::kernels
