// SPDX-License-Identifier: Apache-2.0
//
// 1 / sqrt(x) in binary32 over the vector interface of kernels/simd/.
//
// Definition, for every one of the 2^32 inputs: x' = (|x| < 2^-126 ? +0 : x); result =
// Canon(1 / sqrt(x')), a square root and a division, each correctly rounded. So 0 and subnormal
// numbers of either sign give +Inf, other negative numbers and NaN give 0x7fc00000, +Inf gives +0.
// For x >= 2^-126 it is Rsqrt of kernels/numeric.h, which has the scalar form's name.
//
// Error: at most 1.5 ulp.
#ifndef LOCKSTEP_KERNELS_MATH_RSQRT_H_
#define LOCKSTEP_KERNELS_MATH_RSQRT_H_

#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V>
typename V::F RsqrtV(typename V::F x) {
  const typename V::F zero = V::Set(0.0f);
  const typename V::F settled = V::Select(V::Lt(V::Abs(x), V::Set(0x1p-126f)), zero, x);
  return CanonV<V>(V::Div(V::Set(1.0f), V::Sqrt(settled)));
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_RSQRT_H_
