// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm for AVX2.
#include "kernels/rms_norm/rms_norm_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void RmsNormForwardAvx2(const RmsNormForwardArgs& args, Range range) {
  RmsNormForwardBody<Avx2>(args, range);
}
void RmsNormBackwardAvx2(const RmsNormBackwardArgs& args, Range range) {
  RmsNormBackwardBody<Avx2>(args, range);
}
void RmsNormGainBlocksAvx2(const RmsNormGainBlocksArgs& args, Range range) {
  RmsNormGainBlocksBody<Avx2>(args, range);
}

}  // namespace lockstep::kernels
