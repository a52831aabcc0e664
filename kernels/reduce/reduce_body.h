// SPDX-License-Identifier: Apache-2.0
//
// The sums over a vector backend V.
#ifndef LOCKSTEP_KERNELS_REDUCE_REDUCE_BODY_H_
#define LOCKSTEP_KERNELS_REDUCE_REDUCE_BODY_H_

#include "kernels/reduce/reduce.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V>
float RowSumOf(const float* x, int64_t cols) {
  return RowSumV<V>(cols, [&](int64_t i, auto n) { return SnapV<V>(V::Load(x + i, n)); });
}
template <class V>
float RowSumOf(const BFloat16* x, int64_t cols) {
  return SumByPairsV<V>(cols, [&](typename V::Pair lanes, int64_t i, auto n) {
    return Both<V>(V::Add, lanes, SnapPairV<V>(V::LoadPair(x + i, n)));
  });
}

template <class V>
void RowSumsBody(const RowSumsArgs& args, Range range) {
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      Store(&args.out[r], RowSumOf<V>(x + r * args.stride, args.cols));
    }
  });
}

// Adds kRows rows, ascending, to the totals of a block.
template <class V, int kRows, class T>
void AddRows(const T* x, int64_t cols, int64_t stride, float* totals) {
  ForEachVector<V>(0, cols, [&](int64_t c, auto n) {
    typename V::F acc = V::Load(totals + c, n);
#pragma GCC unroll 32
    for (int k = 0; k < kRows; ++k) {
      acc = V::Add(acc, SnapV<V>(V::Load(x + k * stride + c, n)));
    }
    V::StoreRaw(totals + c, acc, n);
  });
}

template <class V, class T>
void SumRowBlock(const T* x, int64_t rows, const ColumnSumsArgs& of, float* totals) {
  ForEachVector<V>(0, of.cols,
                   [&](int64_t c, auto n) { V::StoreRaw(totals + c, V::Set(0.0f), n); });
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) AddRows<V, 4>(x + r * of.stride, of.cols, of.stride, totals);
  for (; r < rows; ++r) AddRows<V, 1>(x + r * of.stride, of.cols, of.stride, totals);
}

template <class V>
void ColumnBlocksBody(const ColumnBlocksArgs& args, Range range) {
  const ColumnSumsArgs& of = args.of;
  for (int64_t block = range.begin; block < range.end; ++block) {
    const int64_t begin = block * kRowBlock;
    const int64_t rows = of.rows - begin < kRowBlock ? of.rows - begin : kRowBlock;
    float* totals = args.totals + block * of.cols;
    WithFloats(of.x,
               [&](const auto* x) { SumRowBlock<V>(x + begin * of.stride, rows, of, totals); });
  }
}

template <class V>
void ColumnFoldBody(const ColumnFoldArgs& args, Range range) {
  ForEachVector<V>(range.begin, range.end, [&](int64_t c, auto n) {
    typename V::F total = V::Set(0.0f);
    for (int64_t b = 0; b < args.blocks; ++b) {
      total = V::Add(total, V::Load(args.totals + b * args.cols + c, n));
    }
    StoreV<V>(args.out + c, total, n);
  });
}

template <class V>
void SumOfSquaresBody(const SumOfSquaresArgs& args, Range range) {
  for (int64_t k = range.begin; k < range.end; ++k) {
    const float* x = args.x + k * kNormChunk;
    const int64_t left = args.count - k * kNormChunk;
    const auto step = [&](typename V::F lanes, int64_t i, auto n) {
      const typename V::F a = SnapV<V>(V::Load(x + i, n));
      return V::Fma(a, a, lanes);
    };
    Store(&args.totals[k], SumByLanesV<V>(left < kNormChunk ? left : kNormChunk, step));
  }
}

template <class V>
void GlobalNormBody(const GlobalNormArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    const float sum = RowSumV<V>(
        args.chunks, [&](int64_t k, auto n) { return SnapV<V>(V::Load(args.totals + k, n)); });
    Store(&args.norm[i], Sqrt(sum));
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_REDUCE_REDUCE_BODY_H_
