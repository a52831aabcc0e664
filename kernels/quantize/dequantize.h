// SPDX-License-Identifier: Apache-2.0
//
// Integers back to floats, as passes of their own: the int32 product of two quantised matrices, and
// a quantised tensor. Matrix products that dequantise as they store use the same formula
// (kernels/gemm_i8/dequantize.h) and give the bits of the exact product followed by this.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_H_
#define LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_H_

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// out[m, n] = Store(float(p[m, n]) * Canon(row_scale[m] * col_scale[n])): the int32 is rounded to
// the nearest float, and the product of a non-zero integer with a scale that is 0 or at least
// 2^-125 is never subnormal.
struct DequantizeProductArgs {
  FloatElements out;       // [rows, cols]
  const int32_t* p;        // [rows, cols]
  const float* row_scale;  // [rows]
  const float* col_scale;  // [cols]
  int64_t rows;
  int64_t cols;

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 16384 / (cols + 1); }
};

// out[r, c] = Store(float(q[r, c]) * scale[r]). For a tensor with one step: one row.
struct DequantizeRowsArgs {
  FloatElements out;   // [rows, cols]
  const int8_t* q;     // [rows, cols]
  const float* scale;  // [rows]
  int64_t rows;
  int64_t cols;

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 16384 / (cols + 1); }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_DEQUANTIZE_H_
