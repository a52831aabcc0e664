// SPDX-License-Identifier: Apache-2.0
//
// The random fills for AVX-512.
#include "kernels/random/fill_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void UniformFillAvx512(const UniformFillArgs& args, Range range) {
  UniformFillBody<Avx512>(args, range);
}
void TruncatedNormalFillF32Avx512(const TruncatedNormalFillF32Args& args, Range range) {
  TruncatedNormalFillBody<Avx512>(args, range);
}
void TruncatedNormalFillBf16Avx512(const TruncatedNormalFillBf16Args& args, Range range) {
  TruncatedNormalFillBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
