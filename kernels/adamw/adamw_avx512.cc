// SPDX-License-Identifier: Apache-2.0
//
// AdamW for AVX-512.
#include "kernels/adamw/adamw_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void AdamWAvx512(const AdamWArgs& args, Range range) { AdamWBody<Avx512>(args, range); }

}  // namespace lockstep::kernels
