// SPDX-License-Identifier: Apache-2.0
//
// The natural logarithm in binary32. The formula stands here once, over the vector interface of
// kernels/simd/; every instruction set gives the same bits.
//
// Definition, for every one of the 2^32 inputs:
//   NaN and x <= -2^-126 -> 0x7fc00000;  |x| < 2^-126 -> -Inf;  +Inf -> +Inf;
//   otherwise x = 2^e m with m in [sqrt(1/2), sqrt(2)), split in integers:
//   i = bits(x) - 0x3f3504f3;  e = i >> 23 (signed);  m = float of bits (i & 0x7fffff) + 0x3f3504f3
//   f = m - 1                                               (exact)
//   w = P(f) f - 1/2 by Horner's rule in fma, P of degree 8
//   s = f + fma(w, f f, e kLn2Rest)                         (log m, and the tail of e ln 2)
//   result = fma(e, kLn2, s).
// The result is +0 (x = 1) or at least 2^-25 in magnitude, and f is 0 or at least 2^-24, so that no
// step meets the subnormal range.
//
// Error: at most 0.83 ulp.
#ifndef LOCKSTEP_KERNELS_MATH_LOG_H_
#define LOCKSTEP_KERNELS_MATH_LOG_H_

#include "kernels/simd/scalar.h"

namespace lockstep::kernels {

constexpr float kLn2 = 0x1.62e43p-1f;          // ln 2 to nearest
constexpr float kLn2Rest = -0x1.05c61p-29f;    // ln 2 - kLn2
constexpr int32_t kSqrtHalfBits = 0x3f3504f3;  // of sqrt(1/2)

template <class V>
typename V::F LogV(typename V::F x) {
  using F = typename V::F;
  using I = typename V::I;
  const I i = V::SubI(V::AsInt(x), V::SetI(kSqrtHalfBits));
  const F e = V::ToFloat(V::template ShiftRightSigned<23>(i));
  const F m = V::AsFloat(V::AddI(V::AndI(i, V::SetI(0x007fffff)), V::SetI(kSqrtHalfBits)));
  const F f = V::Sub(m, V::Set(1.0f));
  F w = V::Set(0x1.1c951ep-4f);
  w = V::Fma(w, f, V::Set(-0x1.e497aep-4f));
  w = V::Fma(w, f, V::Set(0x1.e67350p-4f));
  w = V::Fma(w, f, V::Set(-0x1.fadcfep-4f));
  w = V::Fma(w, f, V::Set(0x1.2327c4p-3f));
  w = V::Fma(w, f, V::Set(-0x1.55664cp-3f));
  w = V::Fma(w, f, V::Set(0x1.99a626p-3f));
  w = V::Fma(w, f, V::Set(-0x1.ffffe0p-3f));
  w = V::Fma(w, f, V::Set(0x1.555544p-2f));
  w = V::Fma(w, f, V::Set(-0.5f));
  const F s = V::Add(f, V::Fma(w, V::Mul(f, f), V::Mul(e, V::Set(kLn2Rest))));
  F y = V::Fma(e, V::Set(kLn2), s);
  const F infinity = V::AsFloat(V::SetI(0x7f800000));
  y = V::Select(V::Le(V::Set(0.0f), x), y, V::AsFloat(V::SetI(0x7fc00000)));
  y = V::Select(V::Lt(V::Abs(x), V::Set(0x1p-126f)), V::Sub(V::Set(0.0f), infinity), y);
  return V::Select(V::Eq(x, infinity), infinity, y);
}

static inline float Log(float x) { return LogV<Scalar>(x); }

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_LOG_H_
