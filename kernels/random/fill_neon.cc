// SPDX-License-Identifier: Apache-2.0
//
// The random fills for NEON.
#include "kernels/random/fill_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void UniformFillNeon(const UniformFillArgs& args, Range range) {
  UniformFillBody<Neon>(args, range);
}
void TruncatedNormalFillF32Neon(const TruncatedNormalFillF32Args& args, Range range) {
  TruncatedNormalFillBody<Neon>(args, range);
}
void TruncatedNormalFillBf16Neon(const TruncatedNormalFillBf16Args& args, Range range) {
  TruncatedNormalFillBody<Neon>(args, range);
}

}  // namespace lockstep::kernels
