// SPDX-License-Identifier: Apache-2.0
//
// e^x in binary32. The formula stands here once, over the vector interface of kernels/simd/; every
// instruction set gives the same bits.
//
// Definition, for every one of the 2^32 inputs:
//   NaN -> 0x7fc00000;  x > kExpMax -> +Inf (e^x rounds to it);  x < kExpMin -> +0 (e^x < 2^-125);
//   otherwise, every line one rounding, fma where written:
//   t = fma(x, log2(e), 1.5 * 2^23), whose low bits are n, the nearest integer to x / ln 2
//   n = t - 1.5 * 2^23                                      (exact)
//   r = fma(-n, kLn2Low, fma(-n, kLn2High, x))              (|r| < 0.3467; the inner one exact)
//   p = 1 + r + r^2 Q(r) by Horner's rule in fma, Q of degree 4
//   result = the float whose bits are bits(p) + (bits(t) << 23), modulo 2^32: p * 2^n.
// Here n = 128 comes with p < 1 only, and n = -125 with p >= 1 only, so the exponent field never
// leaves its range and the result is canonical. r may be subnormal or, where hardware flushes, 0;
// p is then exactly 1 either way.
//
// Error: at most 0.90 ulp.
#ifndef LOCKSTEP_KERNELS_MATH_EXP_H_
#define LOCKSTEP_KERNELS_MATH_EXP_H_

#include "kernels/simd/scalar.h"

namespace lockstep::kernels {

constexpr float kExpMin = -0x1.5a92d6p+6f;  // the least x with e^x >= 2^-125
constexpr float kExpMax = 0x1.62e42ep+6f;   // the largest x with e^x < 2^128

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits, so that n * kLn2High is exact
constexpr float kLn2Low = 0x1.7f7d1cp-20f;
constexpr float kRoundShift = 0x1.8p+23f;  // added and taken away: rounds to an integer

// 1 + r + r^2 Q(r).
template <class V>
typename V::F ExpPolynomialV(typename V::F r) {
  typename V::F p = V::Set(0x1.6ac142p-10f);
  p = V::Fma(p, r, V::Set(0x1.123da6p-7f));
  p = V::Fma(p, r, V::Set(0x1.555858p-5f));
  p = V::Fma(p, r, V::Set(0x1.55548cp-3f));
  p = V::Fma(p, r, V::Set(0x1.fffffcp-2f));
  p = V::Fma(p, r, V::Set(1.0f));
  return V::Fma(p, r, V::Set(1.0f));
}

// The formula without the special cases: the same bits as ExpV for x in [kExpMin, kExpMax],
// anything elsewhere.
template <class V>
typename V::F ExpInRangeV(typename V::F x) {
  using F = typename V::F;
  const F t = V::Fma(x, V::Set(kLog2E), V::Set(kRoundShift));
  const F n = V::Sub(t, V::Set(kRoundShift));
  const F r = V::Fnma(n, V::Set(kLn2Low), V::Fnma(n, V::Set(kLn2High), x));
  const F p = ExpPolynomialV<V>(r);
  return V::AsFloat(V::AddI(V::AsInt(p), V::template ShiftLeft<23>(V::AsInt(t))));
}

template <class V>
typename V::F ExpV(typename V::F x) {
  using F = typename V::F;
  F y = ExpInRangeV<V>(x);
  y = V::Select(V::Lt(x, V::Set(kExpMin)), V::Set(0.0f), y);
  y = V::Select(V::Lt(V::Set(kExpMax), x), V::AsFloat(V::SetI(0x7f800000)), y);
  return V::Select(V::IsNan(x), V::AsFloat(V::SetI(0x7fc00000)), y);
}

static inline float Exp(float x) { return ExpV<Scalar>(x); }

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_EXP_H_
