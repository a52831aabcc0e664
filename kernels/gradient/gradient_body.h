// SPDX-License-Identifier: Apache-2.0
//
// The gradient's elementwise kernels over a vector backend V.
#ifndef LOCKSTEP_KERNELS_GRADIENT_GRADIENT_BODY_H_
#define LOCKSTEP_KERNELS_GRADIENT_GRADIENT_BODY_H_

#include "kernels/gradient/gradient.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V>
void AccumulateBody(const AccumulateArgs& args, Range range) {
  const typename V::F scale = V::Set(args.scale);
  ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
    StoreV<V>(args.acc + i, V::Fma(V::Load(args.x + i, n), scale, V::Load(args.acc + i, n)), n);
  });
}

template <class V>
void AddIntoBody(const AddIntoArgs& args, Range range) {
  ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
    StoreV<V>(args.acc + i, V::Add(V::Load(args.acc + i, n), V::Load(args.x + i, n)), n);
  });
}

template <class V>
void ScaleBody(const ScaleArgs& args, Range range) {
  const typename V::F scale = V::Set(args.scale);
  ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
    StoreV<V>(args.x + i, V::Mul(V::Load(args.x + i, n), scale), n);
  });
}

template <class V>
void ConvertBf16Body(const ConvertBf16Args& args, Range range) {
  ForEachVector<V>(range.begin, range.end,
                   [&](int64_t i, auto n) { StoreV<V>(args.out + i, V::Load(args.x + i, n), n); });
}

template <class V>
void WidenF32Body(const WidenF32Args& args, Range range) {
  ForEachVector<V>(range.begin, range.end,
                   [&](int64_t i, auto n) { StoreV<V>(args.out + i, V::Load(args.x + i, n), n); });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GRADIENT_GRADIENT_BODY_H_
