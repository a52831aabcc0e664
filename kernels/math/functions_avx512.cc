// SPDX-License-Identifier: Apache-2.0
//
// The function kernels for AVX-512.
#include "kernels/math/functions_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void UnaryAvx512(const UnaryArgs& args, Range range) { UnaryBody<Avx512>(args, range); }
void PowAvx512(const PowArgs& args, Range range) { PowBody<Avx512>(args, range); }

}  // namespace lockstep::kernels
