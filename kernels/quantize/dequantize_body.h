// SPDX-License-Identifier: Apache-2.0
//
// The kernels of dequantize.h over a vector backend V.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_BODY_H_
#define LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_BODY_H_

#include "kernels/gemm_i8/dequantize.h"
#include "kernels/quantize/dequantize.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// Stores of values that are canonical already.
template <class V, class N>
static inline void StoreCanonical(float* p, typename V::F x, N n) {
  V::StoreRaw(p, x, n);
}
template <class V, class N>
static inline void StoreCanonical(BFloat16* p, typename V::F x, N n) {
  const typename V::I bits = V::AsInt(x);
  const typename V::I odd = V::AndI(V::template ShiftRight<16>(bits), V::SetI(1));
  const typename V::I rounded = V::AddI(bits, V::AddI(odd, V::SetI(0x7fff)));
  V::StoreLow16(&p->bits, V::template ShiftRight<16>(rounded), n);
}

// The least and the largest of x as bits, which order floats of at least +0 as they are.
struct ScaleBounds {
  int32_t least;
  int32_t largest;
};
static inline ScaleBounds ScaleBoundsOf(const float* x, int64_t n) {
  ScaleBounds bounds = {0x7fffffff, 0};
  for (int64_t i = 0; i < n; ++i) {
    const int32_t bits = static_cast<int32_t>(Bits(x[i]));
    if (bits < bounds.least) bounds.least = bits;
    if (bits > bounds.largest) bounds.largest = bits;
  }
  return bounds;
}

// Whether all products row_scale * x are positive, at least 2^-125 and, times an int32, finite.
// Such scales are canonical, and so is an integer times one: 0 gives +0, the others more than the
// bound.
static inline bool PlainScales(float row_scale, ScaleBounds bounds) {
  if (bounds.least <= 0) return false;  // 0 or negative
  const float least = row_scale * FromBits(static_cast<uint32_t>(bounds.least));
  const float largest = row_scale * FromBits(static_cast<uint32_t>(bounds.largest));
  return row_scale > 0.0f && least >= kCanonBound && largest < 0x1p96f;
}

template <class V>
void DequantizeProductBody(const DequantizeProductArgs& args, Range range) {
  const ScaleBounds bounds = ScaleBoundsOf(args.col_scale, args.cols);
  WithFloats(args.out, [&](auto* out) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      const typename V::F row_scale = V::Set(args.row_scale[r]);
      const int64_t row = r * args.cols;
      if (PlainScales(args.row_scale[r], bounds)) {
        ForEachVector<V>(0, args.cols, [&](int64_t c, auto n) {
          const typename V::F scale = V::Mul(row_scale, V::Load(args.col_scale + c, n));
          const typename V::F x = V::Mul(V::ToFloat(V::LoadI(args.p + row + c, n)), scale);
          StoreCanonical<V>(out + row + c, x, n);
        });
        continue;
      }
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
