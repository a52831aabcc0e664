// SPDX-License-Identifier: Apache-2.0
//
// The function kernels for AVX2.
#include "kernels/math/functions_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void UnaryAvx2(const UnaryArgs& args, Range range) { UnaryBody<Avx2>(args, range); }
void PowAvx2(const PowArgs& args, Range range) { PowBody<Avx2>(args, range); }

}  // namespace lockstep::kernels
