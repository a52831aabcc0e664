// SPDX-License-Identifier: Apache-2.0
//
// AdamW for NEON.
#include "kernels/adamw/adamw_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void AdamWNeon(const AdamWArgs& args, Range range) { AdamWBody<Neon>(args, range); }

}  // namespace lockstep::kernels
