// SPDX-License-Identifier: Apache-2.0
//
// x^y in binary32. The formula stands here once, over the vector interface of kernels/simd/; every
// instruction set gives the same bits.
//
// Definition, for every pair of inputs. Subnormal x and y count as zeros of their sign. Special
// values are IEEE 754's pow: x^0 = 1^y = 1 even with NaN; otherwise NaN with NaN; negative finite x
// with a finite y that is no integer -> NaN; (-1)^(+-Inf) = 1; an odd integer y keeps the sign of
// x, 0 and Inf included. Otherwise |x|^y = 2^(y log2 |x|), every operation one rounding, fma where
// written, pairs (high, low) being unevaluated sums, and Tail(a, b, p) = 0 - fma(-a, b, p), what
// p = a * b rounded away:
//   |x| = 2^e m and f = m - 1, as in log.h
//   s = f / (m + 1) as a pair: g = m + 1; gl = m - (g - 1); sh = f / g;
//       sl = fma(-sh, gl, fma(-sh, g, f)) / g
//   z = s s: zh = sh sh; zl = fma(sh + sh, sl, Tail(sh, sh, zh))
//   log2 m = s (K + z (k3 + z P(z))), atanh's series with the 2 / ln 2 multiplied in; K and k3 are
//       pairs, P of degree 2, and the operations those of Log2V below, in its order
//   (lh, ll) = e + log2 m;  |x| = 0 or Inf: lh = -Inf or Inf
//   y = 0 if |x| = 1;  th = y lh;  tl = fma(y, ll, Tail(y, lh, th)), 0 unless |th| < 250
//   n = th rounded to an integer, th clamped to [-250, 250];  r = ((th - n) + tl) * kLn2
//   result = Canon(p * 2^n1 * 2^(n - n1)), p = exp.h's polynomial of r, n1 = n >> 1.
// th, tl and ll y may be subnormal or flushed to 0 only where r, and then p, is 1 either way.
//
// Error: at most 1.05 ulp on samples of 2^24 pairs.
#ifndef LOCKSTEP_KERNELS_MATH_POW_H_
#define LOCKSTEP_KERNELS_MATH_POW_H_

#include "kernels/math/exp.h"
#include "kernels/math/log.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// An unevaluated sum.
template <class V>
struct FloatPair {
  typename V::F high;
  typename V::F low;
};

// a * b - p for p = a * b rounded.
template <class V>
typename V::F TailV(typename V::F a, typename V::F b, typename V::F p) {
  return V::Sub(V::Set(0.0f), V::Fnma(a, b, p));
}

// a + b and what it rounded away, for |a| >= |b| or a = 0.
template <class V>
FloatPair<V> OrderedSumV(typename V::F a, typename V::F b) {
  const typename V::F high = V::Add(a, b);
  return {high, V::Sub(b, V::Sub(high, a))};
}

// log2 of a positive normal number; relative error below 2^-34.
template <class V>
FloatPair<V> Log2V(typename V::F x) {
  using F = typename V::F;
  using I = typename V::I;
  const I i = V::SubI(V::AsInt(x), V::SetI(kSqrtHalfBits));
  const F e = V::ToFloat(V::template ShiftRightSigned<23>(i));
  const F m = V::AsFloat(V::AddI(V::AndI(i, V::SetI(0x007fffff)), V::SetI(kSqrtHalfBits)));
  const F f = V::Sub(m, V::Set(1.0f));
  const F g = V::Add(m, V::Set(1.0f));
  const F gl = V::Sub(m, V::Sub(g, V::Set(1.0f)));
  const F sh = V::Div(f, g);
  const F sl = V::Div(V::Fnma(sh, gl, V::Fnma(sh, g, f)), g);
  const F zh = V::Mul(sh, sh);
  const F zl = V::Fma(V::Add(sh, sh), sl, TailV<V>(sh, sh, zh));
  F p = V::Set(0x1.5a1228p-2f);
  p = V::Fma(p, zh, V::Set(0x1.a5ba70p-2f));
  p = V::Fma(p, zh, V::Set(0x1.277710p-1f));
  // u = k3 + z P(z), k3 = 2 / (3 ln 2)
  const FloatPair<V> u = OrderedSumV<V>(V::Set(0x1.ec709ep-1f), V::Mul(zh, p));
  const F ul = V::Add(u.low, V::Set(-0x1.e2fe02p-28f));
  // w = z u
  const F wh = V::Mul(zh, u.high);
  const F wl = V::Fma(zh, ul, V::Fma(zl, u.high, TailV<V>(zh, u.high, wh)));
  // k = K + w, K = 2 / ln 2
  const FloatPair<V> k = OrderedSumV<V>(V::Set(0x1.715476p+1f), wh);
  const F kl = V::Add(k.low, V::Add(wl, V::Set(0x1.4ae0c0p-25f)));
  // log2 m = s k
  const F h = V::Mul(sh, k.high);
  const F l = V::Fma(sh, kl, V::Fma(sl, k.high, TailV<V>(sh, k.high, h)));
  const FloatPair<V> sum = OrderedSumV<V>(e, h);
  return {sum.high, V::Add(sum.low, l)};
}

// 2^(high + low), high clamped: 0 or Inf from where the result is.
template <class V>
typename V::F Exp2V(typename V::F high, typename V::F low) {
  using F = typename V::F;
  using I = typename V::I;
  const F th = V::Max(V::Min(high, V::Set(250.0f)), V::Set(-250.0f));
  const F tl = V::Select(V::Lt(V::Abs(high), V::Set(250.0f)), low, V::Set(0.0f));
  const F n = V::Sub(V::Add(th, V::Set(kRoundShift)), V::Set(kRoundShift));
  const F r = V::Mul(V::Add(V::Sub(th, n), tl), V::Set(kLn2));
  const I whole = V::ToInt(n);
  const I first = V::template ShiftRightSigned<1>(whole);
  const auto scale = [](I k) {
    return V::AsFloat(V::template ShiftLeft<23>(V::AddI(k, V::SetI(127))));
  };
  return V::Mul(V::Mul(ExpPolynomialV<V>(r), scale(first)), scale(V::SubI(whole, first)));
}

template <class V>
typename V::F PowV(typename V::F x, typename V::F y) {
  using F = typename V::F;
  using M = typename V::M;
  const F one = V::Set(1.0f);
  const F infinity = V::AsFloat(V::SetI(0x7f800000));
  const F nan = V::AsFloat(V::SetI(0x7fc00000));
  const F smallest = V::Set(0x1p-126f);
  const F ax = V::Abs(x);
  const F ay = V::Abs(y);
  const M x_is_zero = V::Lt(ax, smallest);
  const FloatPair<V> log2 = Log2V<V>(ax);
  F lh = V::Select(x_is_zero, V::Sub(V::Set(0.0f), infinity), log2.high);
  lh = V::Select(V::Eq(ax, infinity), infinity, lh);
  // log2 1 is 0, and an infinite y must not make NaN of it.
  const F factor = V::Select(V::Eq(ax, one), V::Set(0.0f), y);
  const F th = V::Mul(factor, lh);
  F result = Exp2V<V>(th, V::Fma(factor, log2.low, TailV<V>(factor, lh, th)));
  // Everything from 2^24 on is an even integer, and so is infinity.
  const F clamped = V::Min(ay, V::Set(0x1p24f));
  const typename V::I whole = V::ToInt(clamped);
  const M is_integer = V::Eq(V::ToFloat(whole), clamped);
  const M is_odd = V::And(is_integer, V::EqI(V::AndI(whole, V::SetI(1)), V::SetI(1)));
  const M negative = V::LtI(V::AsInt(x), V::SetI(0));
  result = V::Select(V::And(negative, is_odd), V::Sub(V::Set(0.0f), result), result);
  const M ordinary = V::And(V::Not(x_is_zero), V::Lt(ax, infinity));
  const M undefined = V::And(V::And(negative, ordinary), V::Not(is_integer));
  result = V::Select(V::Or(undefined, V::Or(V::IsNan(x), V::IsNan(y))), nan, result);
  result = V::Select(V::Or(V::Eq(x, one), V::Lt(ay, smallest)), one, result);
  return CanonV<V>(result);
}

static inline float Pow(float x, float y) { return PowV<Scalar>(x, y); }

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_POW_H_
