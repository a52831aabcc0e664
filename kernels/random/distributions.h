// SPDX-License-Identifier: Apache-2.0
//
// From random words to numbers: the formulas of fill.h over the vector interface of kernels/simd/.
#ifndef LOCKSTEP_KERNELS_RANDOM_DISTRIBUTIONS_H_
#define LOCKSTEP_KERNELS_RANDOM_DISTRIBUTIONS_H_

#include "kernels/math/erfinv.h"
#include "kernels/random/fill.h"

namespace lockstep::kernels {

template <class V>
typename V::F UniformV(typename V::I word) {
  return V::Mul(V::ToFloat(V::template ShiftRight<8>(word)), V::Set(0x1p-24f));
}

template <class V>
typename V::F CentredV(typename V::I word) {
  using I = typename V::I;
  const I twice = V::template ShiftLeft<1>(V::template ShiftRight<8>(word));
  return V::Mul(V::ToFloat(V::AddI(twice, V::SetI(1 - (1 << 24)))), V::Set(0x1p-24f));
}

template <class V>
typename V::F NormalV(typename V::I word) {
  using F = typename V::F;
  const F inverse = ErfinvV<V>(V::Mul(CentredV<V>(word), V::Set(kErfOfCut)));
  const F z = V::Mul(inverse, V::Set(kSqrt2));
  return V::Max(V::Min(z, V::Set(kNormalCut)), V::Set(-kNormalCut));
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RANDOM_DISTRIBUTIONS_H_
