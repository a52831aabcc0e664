// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm for AVX-512.
#include "kernels/rms_norm/rms_norm_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void RmsNormForwardAvx512(const RmsNormForwardArgs& args, Range range) {
  RmsNormForwardBody<Avx512>(args, range);
}
void RmsNormBackwardAvx512(const RmsNormBackwardArgs& args, Range range) {
  RmsNormBackwardBody<Avx512>(args, range);
}
void RmsNormGainBlocksAvx512(const RmsNormGainBlocksArgs& args, Range range) {
  RmsNormGainBlocksBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
