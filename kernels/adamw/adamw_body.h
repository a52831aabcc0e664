// SPDX-License-Identifier: Apache-2.0
//
// AdamW over a vector backend V.
#ifndef LOCKSTEP_KERNELS_ADAMW_ADAMW_BODY_H_
#define LOCKSTEP_KERNELS_ADAMW_ADAMW_BODY_H_

#include "kernels/adamw/adamw.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// Moments and parameter of one vector; m and v are updated in memory, the parameter is returned.
template <class V, class N>
typename V::F AdamWStep(const AdamWArgs& args, typename V::F p, int64_t i, N n) {
  using F = typename V::F;
  const AdamWScalars& s = args.scalars;
  const F g = FlushV<V>(V::Mul(V::Load(args.g + i, n), V::Set(args.clip_scale)));
  const F g_part = FlushV<V>(V::Mul(V::Set(s.one_minus_beta1), g));
  const F m = CanonV<V>(V::Fma(V::Set(s.beta1), V::Load(args.m + i, n), g_part));
  const F square = FlushV<V>(V::Mul(V::Set(s.one_minus_beta2), FlushV<V>(V::Mul(g, g))));
  const F v = CanonV<V>(V::Fma(V::Set(s.beta2), V::Load(args.v + i, n), square));
  V::StoreRaw(args.m + i, m, n);
  V::StoreRaw(args.v + i, v, n);
  const F root = V::Sqrt(FlushV<V>(V::Mul(v, V::Set(s.correction2))));
  const F direction = FlushV<V>(V::Mul(m, V::Set(s.correction1)));
  const F u = FlushV<V>(V::Div(direction, V::Add(root, V::Set(s.eps))));
  return V::Fnma(V::Set(s.lr), FlushV<V>(V::Fma(V::Set(s.weight_decay), p, u)), p);
}

template <class V>
void AdamWBody(const AdamWArgs& args, Range range) {
  if (args.p_f32 == nullptr) {
    ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
      StoreV<V>(args.p_bf16 + i, AdamWStep<V>(args, V::Load(args.p_bf16 + i, n), i, n), n);
    });
  } else if (args.p_bf16 == nullptr) {
    ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
      StoreV<V>(args.p_f32 + i, AdamWStep<V>(args, V::Load(args.p_f32 + i, n), i, n), n);
    });
  } else {
    ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
      const typename V::F p = AdamWStep<V>(args, V::Load(args.p_f32 + i, n), i, n);
      StoreV<V>(args.p_f32 + i, p, n);
      StoreV<V>(args.p_bf16 + i, p, n);
    });
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ADAMW_ADAMW_BODY_H_
