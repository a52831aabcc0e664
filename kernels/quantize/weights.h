// SPDX-License-Identifier: Apache-2.0
//
// Quantisation of a weight matrix to int8 with one step per output channel, computed from the
// weights themselves (the paper's §4.2: LSQ's initialisation, re-pinned at every optimizer step
// instead of trained), and the mask of the straight-through estimator that belongs to it.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_WEIGHTS_H_
#define LOCKSTEP_KERNELS_QUANTIZE_WEIGHTS_H_

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/quantize/quantizer.h"
#include "kernels/range.h"

namespace lockstep::kernels {

constexpr double kTwoOverSqrt127 = 0x1.6b7612ec892f6p-3;  // 2 / sqrt(127), to nearest

// The factor between a row's sum of magnitudes and its step, 2 / (sqrt(127) cols): one binary64
// division, rounded to binary32.
static inline float LsqFactor(int64_t cols) {
  return static_cast<float>(kTwoOverSqrt127 / static_cast<double>(cols > 0 ? cols : 1));
}

// Each row o of w, which is one output channel:
//   step[o]    = Canon(S * LsqFactor(cols)), S the row sum (kernels/sums.h) of Snap(|w[o, k]|);
//   q[o, k]    = QuantizeOne(w[o, k], QuantizerOfStep(step[o]));
//   clipped[o] = how many |w[o, k] * inverse| are at least 127.5 and so were rounded beyond 127
//                before the clamp (none where the step is not usable).
// S is 0 or at least 2^-62 and the factor at least 2^-20 for rows shorter than 2^17 elements, so
// the step is never subnormal. It is at most 0.178 times the largest float, so inverse is above
// 2^-126, and |w * inverse| is at most about 5.7 cols: it cannot overflow.
// Multiplying by the reciprocal instead of dividing each weight is the rule, not an approximation
// of it.
struct QuantizeWeightsArgs {
  int8_t* q;         // [rows, cols]
  float* step;       // [rows]
  int32_t* clipped;  // [rows]
  ConstElements w;   // [rows, cols] bf16 or f32
  int64_t rows;      // output channels
  int64_t cols;      // input channels

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 16384 / (cols + 1); }
};

// The straight-through estimator's zeros: gradient[o, k] = 0 where |w[o, k] * inverse| >= 127.5,
// inverse that of QuantizerOfStep(step[o]); all else stays. Rows with clipped[o] = 0 are not read:
// clipping takes a weight 22 times its row's mean magnitude, so almost every row is skipped.
struct MaskClippedArgs {
  float* gradient;         // [rows, cols], in place
  ConstElements w;         // [rows, cols] bf16 or f32, as they were quantised
  const float* step;       // [rows]
  const int32_t* clipped;  // [rows]
  int64_t rows;
  int64_t cols;

  int64_t items() const { return rows; }
  int64_t grain() const { return 64; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_WEIGHTS_H_
