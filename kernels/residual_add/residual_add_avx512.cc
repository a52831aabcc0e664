// SPDX-License-Identifier: Apache-2.0
//
// The residual add for AVX512.
#include "kernels/residual_add/residual_add_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void ResidualAddAvx512(const ResidualAddArgs& args, Range range) {
  ResidualAddBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
