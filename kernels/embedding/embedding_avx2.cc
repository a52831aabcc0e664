// SPDX-License-Identifier: Apache-2.0
//
// The embedding's gather and scatter for AVX2.
#include "kernels/embedding/embedding_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void EmbeddingGatherAvx2(const EmbeddingGatherArgs& args, Range range) {
  EmbeddingGatherBody<Avx2>(args, range);
}
void EmbeddingScatterAvx2(const EmbeddingScatterArgs& args, Range range) {
  EmbeddingScatterBody<Avx2>(args, range);
}

}  // namespace lockstep::kernels
