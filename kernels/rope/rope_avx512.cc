// SPDX-License-Identifier: Apache-2.0
//
// The rotary position embedding for AVX-512.
#include "kernels/rope/rope_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void RopeAvx512(const RopeArgs& args, Range range) { RopeBody<Avx512>(args, range); }

}  // namespace lockstep::kernels
