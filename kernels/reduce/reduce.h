// SPDX-License-Identifier: Apache-2.0
//
// Sums by the written orders of kernels/README.md §3: along rows, down columns, and of squares for
// the global gradient norm and its clip.
#ifndef LOCKSTEP_KERNELS_REDUCE_REDUCE_H_
#define LOCKSTEP_KERNELS_REDUCE_REDUCE_H_

#include "kernels/context.h"
#include "kernels/elements.h"
#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// out[r] = Canon(RowSum(Snap(x[r, :]))). cols = 0 gives +0.
struct RowSumsArgs {
  float* out;       // [rows]
  ConstElements x;  // [rows, cols], row r at r * stride
  int64_t rows;
  int64_t cols;
  int64_t stride;  // elements

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 32768 / (cols + 1); }
};

// out[c] = Canon of the sum of Snap(x[r, c]) over rows: blocks of 256 (kRowBlock) ascending, in a
// block acc = acc + x by ascending row from +0, then total = total + acc from +0.
struct ColumnSumsArgs {
  float* out;       // [cols]
  ConstElements x;  // [rows, cols], row r at r * stride
  int64_t rows;
  int64_t cols;
  int64_t stride;  // elements
};
void ColumnSums(const Context& context, const ColumnSumsArgs& args);

// Its scalar definition, for columns [range.begin, range.end).
void ColumnSumsReference(const ColumnSumsArgs& args, Range range);

// The two halves of a column sum. Totals of the blocks of rows, as they come:
struct ColumnBlocksArgs {
  float* totals;  // [blocks, cols]
  ColumnSumsArgs of;

  int64_t items() const;  // blocks of 256 rows
  int64_t grain() const { return 1; }
};
// and out[c] = Canon(total of totals[:, c], ascending from +0).
struct ColumnFoldArgs {
  float* out;           // [cols]
  const float* totals;  // [blocks, cols]
  int64_t blocks;
  int64_t cols;

  int64_t items() const { return cols; }
  int64_t grain() const { return 4096; }
};

// The chunk of a tensor, the same everywhere: unit of ownership, hashing and norms.
inline constexpr int64_t kNormChunk = 65536;

// totals[k] = Canon(RowDot(Snap(x), Snap(x))) over the elements of chunk k; the last may be short.
struct SumOfSquaresArgs {
  float* totals;   // [ceil(count / kNormChunk)]
  const float* x;  // [count]
  int64_t count;

  int64_t items() const { return (count + kNormChunk - 1) / kNormChunk; }  // chunks
  int64_t grain() const { return 1; }
};

// The norm of all tensors: Canon(sqrt(RowSum(Snap(totals)))), totals of every chunk in canonical
// tensor order. Squares enter with a resolution of 2^-62, so a norm below 2^-31 may read as 0. An
// infinity or NaN anywhere in the tensors, or a sum that overflows, gives Inf or NaN. On the
// calling thread.
struct GlobalNormArgs {
  float* norm;          // [1]
  const float* totals;  // [chunks]
  int64_t chunks;

  int64_t items() const { return 1; }
  int64_t grain() const { return 1; }
};

// What the gradient is multiplied by: norm > clip ? clip / norm : 1. A norm that is NaN gives 1, an
// infinite one 0: the caller, which must skip a step whose norm is not finite, never uses either.
static inline float ClipScale(float norm, float clip) {
  return norm > clip ? Canon(clip / norm) : 1.0f;
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_REDUCE_REDUCE_H_
