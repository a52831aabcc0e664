// SPDX-License-Identifier: Apache-2.0
//
// The kernels of dequantize.h over a vector backend V.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_BODY_H_
#define LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_BODY_H_

#include "kernels/gemm_i8/dequantize.h"
#include "kernels/quantize/dequantize.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V>
void DequantizeProductBody(const DequantizeProductArgs& args, Range range) {
  WithFloats(args.out, [&](auto* out) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      const typename V::F row_scale = V::Set(args.row_scale[r]);
      const int64_t row = r * args.cols;
      ForEachVector<V>(0, args.cols, [&](int64_t c, auto n) {
        const typename V::F x = DequantizeV<V>(V::LoadI(args.p + row + c, n), row_scale,
                                               V::Load(args.col_scale + c, n));
        StoreV<V>(out + row + c, x, n);
      });
    }
  });
}

template <class V>
void DequantizeRowsBody(const DequantizeRowsArgs& args, Range range) {
  WithFloats(args.out, [&](auto* out) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      const typename V::F scale = V::Set(args.scale[r]);
      ForEachVector<V>(r * args.cols, (r + 1) * args.cols, [&](int64_t i, auto n) {
        StoreV<V>(out + i, V::Mul(V::ToFloat(V::LoadI(args.q + i, n)), scale), n);
      });
    }
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_BODY_H_
