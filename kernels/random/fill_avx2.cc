// SPDX-License-Identifier: Apache-2.0
//
// The random fills for AVX2.
#include "kernels/random/fill_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void UniformFillAvx2(const UniformFillArgs& args, Range range) {
  UniformFillBody<Avx2>(args, range);
}
void TruncatedNormalFillF32Avx2(const TruncatedNormalFillF32Args& args, Range range) {
  TruncatedNormalFillBody<Avx2>(args, range);
}
void TruncatedNormalFillBf16Avx2(const TruncatedNormalFillBf16Args& args, Range range) {
  TruncatedNormalFillBody<Avx2>(args, range);
}

}  // namespace lockstep::kernels
