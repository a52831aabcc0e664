// SPDX-License-Identifier: Apache-2.0
//
// The function kernels over a vector backend V. The formulas return canonical values, so they are
// stored as they are.
#ifndef LOCKSTEP_KERNELS_MATH_FUNCTIONS_BODY_H_
#define LOCKSTEP_KERNELS_MATH_FUNCTIONS_BODY_H_

#include "kernels/math/erfinv.h"
#include "kernels/math/exp.h"
#include "kernels/math/functions.h"
#include "kernels/math/log.h"
#include "kernels/math/pow.h"
#include "kernels/math/rsqrt.h"
#include "kernels/math/sigmoid.h"
#include "kernels/math/sin_cos.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V, class Function>
void MapV(const UnaryArgs& args, Range range, Function&& function) {
  ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
    V::StoreRaw(args.out + i, function(V::Load(args.in + i, n)), n);
  });
}

template <class V>
void UnaryBody(const UnaryArgs& args, Range range) {
  using F = typename V::F;
  switch (args.function) {
    case UnaryFunction::kExp:
      return MapV<V>(args, range, [](F x) { return ExpV<V>(x); });
    case UnaryFunction::kLog:
      return MapV<V>(args, range, [](F x) { return LogV<V>(x); });
    case UnaryFunction::kSin:
      return MapV<V>(args, range, [](F x) { return SinV<V>(x); });
    case UnaryFunction::kCos:
      return MapV<V>(args, range, [](F x) { return CosV<V>(x); });
    case UnaryFunction::kSigmoid:
      return MapV<V>(args, range, [](F x) { return SigmoidV<V>(x); });
    case UnaryFunction::kSilu:
      return MapV<V>(args, range, [](F x) { return SiluV<V>(x); });
    case UnaryFunction::kSiluGrad:
      return MapV<V>(args, range, [](F x) { return SiluGradV<V>(x); });
    case UnaryFunction::kRsqrt:
      return MapV<V>(args, range, [](F x) { return RsqrtV<V>(x); });
    case UnaryFunction::kErfinv:
      return MapV<V>(args, range, [](F x) { return ErfinvV<V>(x); });
  }
}

template <class V>
void PowBody(const PowArgs& args, Range range) {
  ForEachVector<V>(range.begin, range.end, [&](int64_t i, auto n) {
    V::StoreRaw(args.out + i, PowV<V>(V::Load(args.x + i, n), V::Load(args.y + i, n)), n);
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_FUNCTIONS_BODY_H_
