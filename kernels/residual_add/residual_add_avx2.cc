// SPDX-License-Identifier: Apache-2.0
//
// The residual add for AVX2.
#include "kernels/residual_add/residual_add_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void ResidualAddAvx2(const ResidualAddArgs& args, Range range) {
  ResidualAddBody<Avx2>(args, range);
}

}  // namespace lockstep::kernels
