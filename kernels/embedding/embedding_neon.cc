// SPDX-License-Identifier: Apache-2.0
//
// The embedding's gather and scatter for NEON.
#include "kernels/embedding/embedding_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void EmbeddingGatherNeon(const EmbeddingGatherArgs& args, Range range) {
  EmbeddingGatherBody<Neon>(args, range);
}
void EmbeddingScatterNeon(const EmbeddingScatterArgs& args, Range range) {
  EmbeddingScatterBody<Neon>(args, range);
}

}  // namespace lockstep::kernels
