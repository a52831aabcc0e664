// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the sums.
#include "kernels/reduce/reduce.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
void RowSumsReference(const RowSumsArgs& args, Range range) {
  for (int64_t r = range.begin; r < range.end; ++r) {
    Store(&args.out[r],
          RowSum(args.cols, [&](int64_t c) { return Snap(At(args.x, r * args.stride + c)); }));
  }
}

void ColumnSumsReference(const ColumnSumsArgs& args, Range range) {
  for (int64_t c = range.begin; c < range.end; ++c) {
    Store(&args.out[c], SumByRowBlocks(args.rows, [&](float acc, int64_t r) {
      return acc + Snap(At(args.x, r * args.stride + c));
    }));
  }
}

void SumOfSquaresReference(const SumOfSquaresArgs& args, Range range) {
  for (int64_t k = range.begin; k < range.end; ++k) {
    const float* x = args.x + k * kNormChunk;
    const int64_t left = args.count - k * kNormChunk;
    const auto snapped = [&](int64_t i) { return Snap(x[i]); };
    Store(&args.totals[k], RowDot(left < kNormChunk ? left : kNormChunk, snapped, snapped));
  }
}

void GlobalNormReference(const GlobalNormArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    Store(&args.norm[i],
          Sqrt(RowSum(args.chunks, [&](int64_t k) { return Snap(args.totals[k]); })));
  }
}

}  // namespace lockstep::kernels
