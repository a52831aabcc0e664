// SPDX-License-Identifier: Apache-2.0
//
// The rotary position embedding for NEON.
#include "kernels/rope/rope_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void RopeNeon(const RopeArgs& args, Range range) { RopeBody<Neon>(args, range); }

}  // namespace lockstep::kernels
