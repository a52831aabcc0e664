// SPDX-License-Identifier: Apache-2.0
//
// AdamW for AVX2.
#include "kernels/adamw/adamw_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void AdamWAvx2(const AdamWArgs& args, Range range) { AdamWBody<Avx2>(args, range); }

}  // namespace lockstep::kernels
