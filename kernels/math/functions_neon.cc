// SPDX-License-Identifier: Apache-2.0
//
// The function kernels for NEON.
#include "kernels/math/functions_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void UnaryNeon(const UnaryArgs& args, Range range) { UnaryBody<Neon>(args, range); }
void PowNeon(const PowArgs& args, Range range) { PowBody<Neon>(args, range); }

}  // namespace lockstep::kernels
