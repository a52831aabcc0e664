// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the embedding's gather and scatter.
#include "kernels/embedding/embedding.h"

namespace lockstep::kernels {

void EmbeddingGatherReference(const EmbeddingGatherArgs& args, Range range) {
  for (int64_t t = range.begin; t < range.end; ++t) {
    for (int64_t c = 0; c < args.cols; ++c) {
      Store(&args.out[t * args.cols + c], At(args.table, args.ids[t] * args.cols + c));
    }
  }
}

void EmbeddingScatterReference(const EmbeddingScatterArgs& args, Range range) {
  for (int64_t v = range.begin; v < range.end; ++v) {
    for (int64_t c = 0; c < args.cols; ++c) {
      float acc = 0.0f;
      for (int32_t k = args.starts[v]; k < args.starts[v + 1]; ++k) {
        acc = acc + Snap(ToFloat(args.dy[args.positions[k] * args.cols + c]));
      }
      Store(&args.dtable[v * args.cols + c], acc);
    }
  }
}

}  // namespace lockstep::kernels
