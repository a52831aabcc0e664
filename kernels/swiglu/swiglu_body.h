// SPDX-License-Identifier: Apache-2.0
//
// SwiGLU over a vector backend V.
#ifndef LOCKSTEP_KERNELS_SWIGLU_SWIGLU_BODY_H_
#define LOCKSTEP_KERNELS_SWIGLU_SWIGLU_BODY_H_

#include "kernels/simd/ops.h"
#include "kernels/swiglu/swiglu.h"
#include "kernels/swiglu/swiglu_formula.h"

namespace lockstep::kernels {

// Elements of a row read ahead: the gate and up of one row are two streams that end together, which
// the hardware's own prefetcher does not expect.
constexpr int64_t kSwigluAhead = 512;

template <class V>
void SwigluForwardBody(const SwigluForwardArgs& args, Range range) {
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* gate = args.x + r * 2 * args.width;
    const BFloat16* up = gate + args.width;
    BFloat16* out = args.out + r * args.width;
    ForEachPair<V>(0, args.width, [&](int64_t j, auto n) {
      const int64_t ahead =
          j + kSwigluAhead < args.width ? j + kSwigluAhead : j + kSwigluAhead + args.width;
      __builtin_prefetch(gate + ahead);
      __builtin_prefetch(up + ahead);
      StorePairV<V>(out + j,
                    Both<V>([](typename V::F g, typename V::F u) { return SwigluOutV<V>(g, u); },
                            V::LoadPair(gate + j, n), V::LoadPair(up + j, n)),
                    n);
    });
  }
}

template <class V>
void SwigluBackwardBody(const SwigluBackwardArgs& args, Range range) {
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* gate = args.x + r * 2 * args.width;
    const BFloat16* up = gate + args.width;
    const BFloat16* dout = args.dout + r * args.width;
    BFloat16* dgate = args.dx + r * 2 * args.width;
    BFloat16* dup = dgate + args.width;
    ForEachPair<V>(0, args.width, [&](int64_t j, auto n) {
      const int64_t ahead =
          j + kSwigluAhead < args.width ? j + kSwigluAhead : j + kSwigluAhead + args.width;
      __builtin_prefetch(gate + ahead);
      __builtin_prefetch(up + ahead);
      const typename V::Pair g = V::LoadPair(gate + j, n);
      const typename V::Pair u = V::LoadPair(up + j, n);
      const typename V::Pair d = V::LoadPair(dout + j, n);
      const SwigluSlopes<V> even(g.even);
      const SwigluSlopes<V> odd(g.odd);
      const typename V::Pair through_up = FlushPairV<V>(Both<V>(V::Mul, d, u));
      StorePairV<V>(
          dgate + j,
          {V::Mul(through_up.even, even.derivative), V::Mul(through_up.odd, odd.derivative)}, n);
      StorePairV<V>(dup + j, {V::Mul(d.even, even.silu), V::Mul(d.odd, odd.silu)}, n);
    });
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SWIGLU_SWIGLU_BODY_H_
