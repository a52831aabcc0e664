// SPDX-License-Identifier: Apache-2.0
//
// Residual add: the branch's output joins the residual stream. out = x + y, elementwise, in bf16;
// its backward is the identity on both sides, so two gradients that meet are added by the same
// kernel.
#ifndef LOCKSTEP_KERNELS_RESIDUAL_ADD_RESIDUAL_ADD_H_
#define LOCKSTEP_KERNELS_RESIDUAL_ADD_RESIDUAL_ADD_H_

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// out[i] = bf16(x[i] + y[i]): one binary32 addition, canonical, rounded to nearest even. out may be
// x or y. The sum of two canonical bf16 values is +0 or at least 2^-133 in magnitude; what is below
// 2^-125 becomes +0 at the store.
struct ResidualAddArgs {
  BFloat16* out;      // [count]
  const BFloat16* x;  // [count]
  const BFloat16* y;  // [count]
  int64_t count;

  int64_t items() const { return count; }  // elements
  int64_t grain() const { return 16384; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RESIDUAL_ADD_RESIDUAL_ADD_H_
