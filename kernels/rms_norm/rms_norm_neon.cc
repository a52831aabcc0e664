// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm for NEON.
#include "kernels/rms_norm/rms_norm_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void RmsNormForwardNeon(const RmsNormForwardArgs& args, Range range) {
  RmsNormForwardBody<Neon>(args, range);
}
void RmsNormBackwardNeon(const RmsNormBackwardArgs& args, Range range) {
  RmsNormBackwardBody<Neon>(args, range);
}
void RmsNormGainBlocksNeon(const RmsNormGainBlocksArgs& args, Range range) {
  RmsNormGainBlocksBody<Neon>(args, range);
}

}  // namespace lockstep::kernels
