// SPDX-License-Identifier: Apache-2.0
//
// The logistic function, SiLU and its derivative in binary32. The formulas stand here once, over
// the vector interface of kernels/simd/; every instruction set gives the same bits. All three take
// one exponential of a number that is not positive and one division.
//
// Definitions, for every one of the 2^32 inputs; every operation one rounding:
//   e = Exp(-|x|), formula of exp.h                          (0, or in [2^-125, 1])
//   s = (x < 0 ? e : 1) / (1 + e)                            (sigmoid(x))
//   t = x < 0 ? 1 - s : e * s                                (1 - sigmoid(x))
//   Sigmoid(x)  = s;  NaN -> 0x7fc00000
//   Silu(x)     = Canon(x * s)
//   SiluGrad(x) = Canon(s * fma(x, t, 1)).
// The products with infinity are IEEE's: Silu(-Inf), SiluGrad(+Inf) and SiluGrad(-Inf) are NaN, so
// that a run that has diverged does not look healthy. 1 + e is 1 unless e >= 2^-25, so s and t are
// 0 or at least 2^-125; the other products are settled by Canon.
//
// Error, for |x| <= 86.6: Sigmoid at most 2.41 ulp, Silu at most 3.23 ulp; SiluGrad, whose sign
// changes at x = -1.278, at most 4.3 ulp of max(sigmoid(x), |result|). For x < kExpMin = -86.6 all
// three are 0 where the true value is below 2^-118 in magnitude.
#ifndef LOCKSTEP_KERNELS_MATH_SIGMOID_H_
#define LOCKSTEP_KERNELS_MATH_SIGMOID_H_

#include "kernels/math/exp.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// sigmoid(x) and 1 - sigmoid(x); some numbers where x is NaN.
template <class V>
struct SigmoidPair {
  typename V::F s;
  typename V::F t;
};
template <class V>
SigmoidPair<V> SigmoidPairV(typename V::F x) {
  using F = typename V::F;
  const F zero = V::Set(0.0f);
  const F one = V::Set(1.0f);
  const F a = V::Sub(zero, V::Abs(x));
  const F e = V::Select(V::Lt(a, V::Set(kExpMin)), zero, ExpInRangeV<V>(a));
  const typename V::M negative = V::Lt(x, zero);
  const F s = V::Div(V::Select(negative, e, one), V::Add(one, e));
  return {s, V::Select(negative, V::Sub(one, s), V::Mul(e, s))};
}

template <class V>
typename V::F SigmoidV(typename V::F x) {
  return V::Select(V::IsNan(x), V::AsFloat(V::SetI(0x7fc00000)), SigmoidPairV<V>(x).s);
}

// Before Canon, for kernels that go on with the value and settle tiny ones themselves.
template <class V>
typename V::F SiluRawV(typename V::F x) {
  return V::Mul(x, SigmoidPairV<V>(x).s);
}

// Silu and its derivative before Canon, for backward passes: one exponential, one division.
template <class V>
struct SiluPair {
  typename V::F silu;
  typename V::F grad;
};
template <class V>
SiluPair<V> SiluPairRawV(typename V::F x) {
  const SigmoidPair<V> pair = SigmoidPairV<V>(x);
  return {V::Mul(x, pair.s), V::Mul(pair.s, V::Fma(x, pair.t, V::Set(1.0f)))};
}

template <class V>
typename V::F SiluV(typename V::F x) {
  return CanonV<V>(SiluRawV<V>(x));
}

template <class V>
typename V::F SiluGradV(typename V::F x) {
  return CanonV<V>(SiluPairRawV<V>(x).grad);
}

static inline float Sigmoid(float x) { return SigmoidV<Scalar>(x); }
static inline float Silu(float x) { return SiluV<Scalar>(x); }
static inline float SiluGrad(float x) { return SiluGradV<Scalar>(x); }

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_SIGMOID_H_
