// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the residual add.
#include "kernels/residual_add/residual_add.h"

namespace lockstep::kernels {

void ResidualAddReference(const ResidualAddArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    Store(&args.out[i], ToFloat(args.x[i]) + ToFloat(args.y[i]));
  }
}

}  // namespace lockstep::kernels
