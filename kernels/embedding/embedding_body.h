// SPDX-License-Identifier: Apache-2.0
//
// The embedding's gather and scatter over a vector backend V.
#ifndef LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_BODY_H_
#define LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_BODY_H_

#include "kernels/embedding/embedding.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V, class T>
void GatherRows(const EmbeddingGatherArgs& args, const T* table, Range range) {
  for (int64_t t = range.begin; t < range.end; ++t) {
    const T* row = table + args.ids[t] * args.cols;
    BFloat16* out = args.out + t * args.cols;
    ForEachVector<V>(0, args.cols,
                     [&](int64_t c, auto n) { StoreV<V>(out + c, V::Load(row + c, n), n); });
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
    ForEachVector<V>(0, args.cols, [&](int64_t c, auto n) {
      typename V::F acc = V::Set(0.0f);
      for (int32_t k = args.starts[v]; k < args.starts[v + 1]; ++k) {
        acc = V::Add(acc, SnapV<V>(V::Load(args.dy + args.positions[k] * args.cols + c, n)));
      }
      StoreV<V>(row + c, acc, n);
    });
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_BODY_H_
