// SPDX-License-Identifier: Apache-2.0
//
// The embedding's gather and scatter over a vector backend V.
#ifndef LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_BODY_H_
#define LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_BODY_H_

#include "kernels/embedding/embedding.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V>
void GatherRow(BFloat16* out, const float* row, const float* soon, int64_t cols) {
  ForEachVector<V>(0, cols, [&](int64_t c, auto n) {
    __builtin_prefetch(soon + c);
    StoreV<V>(out + c, V::Load(row + c, n), n);
  });
}
template <class V>
void GatherRow(BFloat16* out, const BFloat16* row, const BFloat16* soon, int64_t cols) {
  ForEachPair<V>(0, cols, [&](int64_t c, auto n) {
    __builtin_prefetch(soon + c);
    StorePairV<V>(out + c, V::LoadPair(row + c, n), n);
  });
}

// Rows lie anywhere in the table: the next one is fetched while this one is copied.
template <class V, class T>
void GatherRows(const EmbeddingGatherArgs& args, const T* table, Range range) {
  for (int64_t t = range.begin; t < range.end; ++t) {
    const int64_t next = t + 1 < range.end ? t + 1 : t;
    GatherRow<V>(args.out + t * args.cols, table + args.ids[t] * args.cols,
                 table + args.ids[next] * args.cols, args.cols);
  }
}

template <class V>
void EmbeddingGatherBody(const EmbeddingGatherArgs& args, Range range) {
  WithFloats(args.table, [&](const auto* table) { GatherRows<V>(args, table, range); });
}

template <class V>
void EmbeddingScatterBody(const EmbeddingScatterArgs& args, Range range) {
  for (int64_t v = range.begin; v < range.end; ++v) {
    float* row = args.dtable + v * args.cols;
    const int32_t begin = args.starts[v];
    const int32_t end = args.starts[v + 1];
    // The first row that the next entry of the vocabulary takes, if there is one.
    const int32_t next = end < args.starts[range.end] ? end : begin;
    const BFloat16* soon = begin < end ? args.dy + args.positions[next] * args.cols : args.dy;
    ForEachVector<V>(0, args.cols, [&](int64_t c, auto n) {
      __builtin_prefetch(soon + c);
      typename V::F acc = V::Set(0.0f);
      for (int32_t k = begin; k < end; ++k) {
        acc = V::Add(acc, SnapV<V>(V::Load(args.dy + args.positions[k] * args.cols + c, n)));
      }
      StoreV<V>(row + c, acc, n);
    });
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_BODY_H_
