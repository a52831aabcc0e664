// SPDX-License-Identifier: Apache-2.0
//
// The embedding's gather and scatter for AVX-512.
#include "kernels/embedding/embedding_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void EmbeddingGatherAvx512(const EmbeddingGatherArgs& args, Range range) {
  EmbeddingGatherBody<Avx512>(args, range);
}
void EmbeddingScatterAvx512(const EmbeddingScatterArgs& args, Range range) {
  EmbeddingScatterBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
