// SPDX-License-Identifier: Apache-2.0
//
// The residual add over a vector backend V.
#ifndef LOCKSTEP_KERNELS_RESIDUAL_ADD_RESIDUAL_ADD_BODY_H_
#define LOCKSTEP_KERNELS_RESIDUAL_ADD_RESIDUAL_ADD_BODY_H_

#include "kernels/residual_add/residual_add.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V>
void ResidualAddBody(const ResidualAddArgs& args, Range range) {
  ForEachPair<V>(range.begin, range.end, [&](int64_t i, auto n) {
    StorePairV<V>(args.out + i,
                  Both<V>(V::Add, V::LoadPair(args.x + i, n), V::LoadPair(args.y + i, n)), n);
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RESIDUAL_ADD_RESIDUAL_ADD_BODY_H_
