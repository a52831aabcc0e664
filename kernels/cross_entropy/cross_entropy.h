// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy with z-loss: the loss of each row of logits, and in place of the logits
// their gradient. The language-model head around it, which never holds all logits, is
// kernels/cross_entropy/lm_head.h.
#ifndef LOCKSTEP_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_H_
#define LOCKSTEP_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_H_

#include <cstdint>

#include "kernels/range.h"

namespace lockstep::kernels {

constexpr int32_t kIgnoredTarget = -1;

// For a row x [vocab] with target t, g = scale and every line rounded as written (Exp and Log of
// kernels/math/, RowSum of kernels/sums.h):
//
//   m    = the largest x[j] that is not NaN, order-free; -Inf if there is none
//   e[j] = Snap(Exp(x[j] - m))
//   s    = RowSum(e[0 .. vocab - 1])
//   lse  = Canon(m + Log(s))
//   loss = Canon(lse - x[t])                   the cross-entropy
//   z    = Canon(lse * lse)                    the z-loss, before its coefficient
//   b    = Canon((2 * z_coefficient) * lse)
//   c    = Canon(fma(b, g, g))
//   r    = Canon(c * (1 / s))
//   gradient[j] = Canon(e[j] * r) for j != t,  gradient[t] = Canon(fma(e[t], r, -g))
//
// which is g * d(loss + z_coefficient * z) / dx[j] = p_j (g + 2 z_coefficient lse g) - [j = t] g.
// With gradient false the logits stay as they are. A row whose target is kIgnoredTarget has loss,
// z and gradient +0 whatever its logits are.
//
// Tiny numbers: x - m may be subnormal, and Exp is then 1 either way; e is 0 or at least 2^-62; s
// is at least 1 (the largest x gives 1), 1 / s is normal; the rest is made canonical as written.
// NaN or +Inf in a row make s, and all results of the row, NaN.
struct CrossEntropyArgs {
  float* loss;             // [rows]
  float* z;                // [rows]
  float* logits;           // [rows, vocab], in place
  const int32_t* targets;  // [rows], in 0 .. vocab - 1, or kIgnoredTarget
  int64_t rows;
  int64_t vocab;
  float scale;          // of the gradient, such as 1 / tokens
  float z_coefficient;  // such as 1e-4
  bool gradient;

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 4096 / (vocab + 1); }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_H_
