// SPDX-License-Identifier: Apache-2.0
//
// The formulas of SwiGLU on one vector, written once for the reference and every instruction set.
//
// SwigluExp(x) = e^-x for x in [-80, 80], to a relative error of 2^-15.4:
//   t = fma(x, -log2(e), 1.5 * 2^23), whose low bits are n, the nearest integer to -x / ln 2
//   f = fma(x, -log2(e), 1.5 * 2^23 - t)               (the inner difference is exact: -n)
//   p = 1 + f (c1 + f (c2 + f (c3 + f c4))) by Horner's rule in fma, near 2^f for |f| <= 1/2
//   result = the float whose bits are bits(p) + (bits(t) << 23), modulo 2^32: p * 2^n
// The coefficients are the minimax ones of the relative error among polynomials with p(0) = 1.
// f may be subnormal or, where hardware flushes, 0; p is then exactly 1 either way.
#ifndef LOCKSTEP_KERNELS_SWIGLU_SWIGLU_FORMULA_H_
#define LOCKSTEP_KERNELS_SWIGLU_SWIGLU_FORMULA_H_

#include "kernels/simd/scalar.h"

namespace lockstep::kernels {

template <class V>
typename V::F SwigluExpV(typename V::F x) {
  using F = typename V::F;
  const F shift = V::Set(0x1.8p+23f);
  const F minus_log2e = V::Set(-0x1.715476p+0f);
  const F t = V::Fma(x, minus_log2e, shift);
  const F f = V::Fma(x, minus_log2e, V::Sub(shift, t));
  F p = V::Set(0x1.2f71fep-7f);
  p = V::Fma(p, f, V::Set(0x1.c8e8fp-5f));
  p = V::Fma(p, f, V::Set(0x1.ec194p-3f));
  p = V::Fma(p, f, V::Set(0x1.62e34ap-1f));
  p = V::Fma(p, f, V::Set(1.0f));
  return V::AsFloat(V::AddI(V::AsInt(p), V::template ShiftLeft<23>(V::AsInt(t))));
}

// The clamped gate and 1 + e^-gate.
template <class V>
struct SwigluGate {
  typename V::F clamped;
  typename V::F denominator;

  explicit SwigluGate(typename V::F gate)
      : clamped(V::Max(V::Set(-80.0f), gate)),
        denominator(V::Add(V::Set(1.0f), SwigluExpV<V>(V::Min(clamped, V::Set(80.0f))))) {}
};

template <class V>
typename V::F SwigluOutV(typename V::F gate, typename V::F up) {
  const SwigluGate<V> g(gate);
  return V::Mul(V::Div(g.clamped, g.denominator), up);
}

// The sigmoid's two uses in the backward pass.
template <class V>
struct SwigluSlopes {
  typename V::F silu;
  typename V::F derivative;

  explicit SwigluSlopes(typename V::F gate) {
    const SwigluGate<V> g(gate);
    const typename V::F s = V::Div(V::Set(1.0f), g.denominator);
    silu = V::Mul(g.clamped, s);
    derivative = V::Fma(silu, V::Sub(V::Set(1.0f), s), s);
  }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SWIGLU_SWIGLU_FORMULA_H_
