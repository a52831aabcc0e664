// SPDX-License-Identifier: Apache-2.0
//
// The one formula by which int32 products of quantised values become floats, on one number and over
// a vector backend V: for the kernels that multiply and for those that only dequantise. Which
// scales there are and how values are quantised is said elsewhere.
#ifndef LOCKSTEP_KERNELS_GEMM_I8_DEQUANTIZE_H_
#define LOCKSTEP_KERNELS_GEMM_I8_DEQUANTIZE_H_

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// The scale of one output: one binary32 product, canonical.
static inline float DequantizeScale(float row_scale, float col_scale) {
  return Canon(row_scale * col_scale);
}

// float(p) * Canon(row_scale * col_scale): p is converted to the nearest float, ties to even, and
// the product is rounded once. To be stored with Store, or to be made canonical before any further
// use (0 * negative is -0, 0 * Inf is NaN); where p is not 0 the product is not below 2^-125, since
// neither |p| is below 1 nor the scale, unless 0, below 2^-125.
static inline float Dequantize(int32_t p, float row_scale, float col_scale) {
  return static_cast<float>(p) * DequantizeScale(row_scale, col_scale);
}

// The same in each lane; to be stored with StoreV.
template <class V>
typename V::F DequantizeV(typename V::I p, typename V::F row_scale, typename V::F col_scale) {
  return V::Mul(V::ToFloat(p), CanonV<V>(V::Mul(row_scale, col_scale)));
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_I8_DEQUANTIZE_H_
