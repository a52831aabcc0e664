// SPDX-License-Identifier: Apache-2.0
//
// The inverse of the error function in binary32, for normal deviates from uniform ones. The formula
// stands here once, over the vector interface of kernels/simd/.
//
// Definition, for every one of the 2^32 inputs:
//   NaN and |x| > 1 -> 0x7fc00000;  +1 -> +Inf;  -1 -> -Inf;
//   otherwise, every operation one rounding:
//   w = -Log((1 - x) * (1 + x)), Log of log.h               (0 <= w < 16)
//   p = w < 5 ? C(w - 2.5) : T(sqrt(w) - 3), polynomials of degree 9 by Horner's rule in fma
//   result = Canon(x * p).
// Only x itself can be tiny; then p = C(-2.5), and Canon settles the product.
//
// Error: at most 5.2 ulp.
#ifndef LOCKSTEP_KERNELS_MATH_ERFINV_H_
#define LOCKSTEP_KERNELS_MATH_ERFINV_H_

#include "kernels/math/log.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// C(u): the centre, w = u + 2.5 < 5, which is |x| < 0.9966.
template <class V>
typename V::F ErfinvCentreV(typename V::F u) {
  typename V::F p = V::Set(-0x1.2d3096p-27f);
  p = V::Fma(p, u, V::Set(0x1.8fc828p-26f));
  p = V::Fma(p, u, V::Set(0x1.f4375ep-22f));
  p = V::Fma(p, u, V::Set(-0x1.d0cfccp-19f));
  p = V::Fma(p, u, V::Set(-0x1.4d00bcp-18f));
  p = V::Fma(p, u, V::Set(0x1.c9e784p-13f));
  p = V::Fma(p, u, V::Set(-0x1.486634p-10f));
  p = V::Fma(p, u, V::Set(-0x1.11c4f2p-8f));
  p = V::Fma(p, u, V::Set(0x1.f91e8ap-3f));
  return V::Fma(p, u, V::Set(0x1.805c5ep+0f));
}

// T(u): the tails, sqrt(w) = u + 3.
template <class V>
typename V::F ErfinvTailV(typename V::F u) {
  typename V::F p = V::Set(0x1.0bb1fep-13f);
  p = V::Fma(p, u, V::Set(-0x1.4daae4p-12f));
  p = V::Fma(p, u, V::Set(-0x1.38420ap-14f));
  p = V::Fma(p, u, V::Set(0x1.87f8bap-10f));
  p = V::Fma(p, u, V::Set(-0x1.d64fa2p-9f));
  p = V::Fma(p, u, V::Set(0x1.74773ap-8f));
  p = V::Fma(p, u, V::Set(-0x1.f4a3e8p-8f));
  p = V::Fma(p, u, V::Set(0x1.3583fcp-7f));
  p = V::Fma(p, u, V::Set(0x1.006dc8p+0f));
  return V::Fma(p, u, V::Set(0x1.6a9efcp+1f));
}

template <class V>
typename V::F ErfinvV(typename V::F x) {
  using F = typename V::F;
  const F one = V::Set(1.0f);
  const F w = V::Sub(V::Set(0.0f), LogV<V>(V::Mul(V::Sub(one, x), V::Add(one, x))));
  F p = ErfinvCentreV<V>(V::Sub(w, V::Set(2.5f)));
  const typename V::M in_tail = V::Le(V::Set(5.0f), w);
  if (V::Any(in_tail)) {  // one number in 300
    p = V::Select(in_tail, ErfinvTailV<V>(V::Sub(V::Sqrt(w), V::Set(3.0f))), p);
  }
  const F y = V::Mul(x, p);
  const F infinite = V::Mul(x, V::AsFloat(V::SetI(0x7f800000)));
  return CanonV<V>(V::Select(V::Eq(V::Abs(x), one), infinite, y));
}

static inline float Erfinv(float x) { return ErfinvV<Scalar>(x); }

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_ERFINV_H_
