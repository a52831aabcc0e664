// SPDX-License-Identifier: Apache-2.0
//
// The residual add for NEON.
#include "kernels/residual_add/residual_add_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void ResidualAddNeon(const ResidualAddArgs& args, Range range) {
  ResidualAddBody<Neon>(args, range);
}

}  // namespace lockstep::kernels
