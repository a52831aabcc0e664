// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm along rows, with or without a gain, forward and backward. Rows may be strided, so that
// the same kernels normalise the heads of q and k inside a fused qkv tensor.
//
// Layout: a tensor of [tokens, heads, cols] whose token t begins at t * stride elements; the heads
// of a token stand one after the other, head h at h * cols. A plain [rows, cols] tensor has heads =
// 1 and stride = cols. Row r is head r % heads of token r / heads. rstd is [tokens * heads], dense.
//
// Snap, Canon, RowDot: kernels/README.md §2 and §3. Operations below are written in their exact
// order; each is one rounding, fma where named.
#ifndef LOCKSTEP_KERNELS_RMS_NORM_RMS_NORM_H_
#define LOCKSTEP_KERNELS_RMS_NORM_RMS_NORM_H_

#include <algorithm>

#include "kernels/context.h"
#include "kernels/elements.h"
#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// What a mean over cols multiplies by.
static inline float RmsNormInverse(int64_t cols) { return 1.0f / static_cast<float>(cols); }

// For each row:
//   ms = Canon(RowDot(Snap(x), Snap(x)) * inv_cols)
//   rstd = 1 / sqrt(ms + eps)
//   y_i = bf16(Canon(x_i * rstd) * gain_i), or bf16(x_i * rstd) without a gain.
// rstd is never tiny: the square root of a float is below 2^64. y may be x; nothing else overlaps.
struct RmsNormForwardArgs {
  BFloat16* y;         // [tokens, heads, cols], stride y_stride
  float* rstd;         // [tokens * heads]
  const BFloat16* x;   // [tokens, heads, cols], stride x_stride
  ConstElements gain;  // [cols], or none
  int64_t tokens;
  int64_t heads;
  int64_t cols;
  int64_t y_stride;  // elements, at least heads * cols
  int64_t x_stride;
  float inv_cols;  // RmsNormInverse(cols)
  float eps;       // > 0

  int64_t items() const { return tokens * heads; }  // rows
  int64_t grain() const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(cols, 1)); }
};

// The gradient of x. With h_i = Canon(dy_i * gain_i), or dy_i without a gain, for each row:
//   c = Canon(Canon(Canon(RowDot(Snap(h), Snap(x)) * inv_cols) * rstd) * rstd)
//   dx_i = bf16(Canon(fma(-x_i, c, h_i)) * rstd)
// which is rstd * (h - xhat * mean(h * xhat)) with xhat = x * rstd. dx may be dy.
struct RmsNormBackwardArgs {
  BFloat16* dx;        // [tokens, heads, cols], stride dx_stride
  const BFloat16* dy;  // [tokens, heads, cols], stride dy_stride
  const BFloat16* x;   // [tokens, heads, cols], stride x_stride
  const float* rstd;   // [tokens * heads], of the forward pass
  ConstElements gain;  // [cols], or none
  int64_t tokens;
  int64_t heads;
  int64_t cols;
  int64_t dx_stride;
  int64_t dy_stride;
  int64_t x_stride;
  float inv_cols;  // RmsNormInverse(cols)

  int64_t items() const { return tokens * heads; }  // rows
  int64_t grain() const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(cols, 1)); }
};

// The gradient of the gain: a column sum over all rows, ascending in blocks of 256 (kRowBlock):
//   in a block, acc = fma(Snap(dy_rc), Snap(x_rc * rstd_r), acc) from +0; block totals ascending.
// A tiny product needs no Canon: Snap turns it into +0 whether it was flushed or not. No rows: +0.
struct RmsNormGainGradientArgs {
  float* dgain;        // [cols]
  const BFloat16* dy;  // [tokens, heads, cols], stride dy_stride
  const BFloat16* x;   // [tokens, heads, cols], stride x_stride
  const float* rstd;   // [tokens * heads], of the forward pass
  int64_t tokens;
  int64_t heads;
  int64_t cols;
  int64_t dy_stride;
  int64_t x_stride;
};
void RmsNormGainGradient(const Context& context, const RmsNormGainGradientArgs& args);

// Its scalar definition, for columns [range.begin, range.end).
void RmsNormGainGradientReference(const RmsNormGainGradientArgs& args, Range range);

// Its inner kernel: the totals of the blocks of rows, to be added by ColumnFold (kernels/reduce/).
struct RmsNormGainBlocksArgs {
  float* totals;  // [blocks, cols], as they come (multiples of 2^-124)
  RmsNormGainGradientArgs of;

  int64_t items() const;  // blocks of 256 rows
  int64_t grain() const { return 1; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RMS_NORM_RMS_NORM_H_
