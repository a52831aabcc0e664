// SPDX-License-Identifier: Apache-2.0
//
// The language-model head with its loss: logits, cross-entropy with z-loss and both gradients, a
// chunk of tokens at a time, so that logits of all tokens are never held, and those of a chunk only
// once.
// Source: the paper's §3.1, "computed in the same fused, chunked pass as the cross-entropy loss".
#ifndef LOCKSTEP_KERNELS_CROSS_ENTROPY_LM_HEAD_H_
#define LOCKSTEP_KERNELS_CROSS_ENTROPY_LM_HEAD_H_

#include <cstdint>

#include "kernels/context.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/elements.h"

namespace lockstep::kernels {

// Chunks are multiples of kDepth tokens, so that adding them up gives the bits of one product. Each
// passes over the whole of w and of dw, so that short ones cost a sixth more.
constexpr int64_t kLmHeadChunkBytes = int64_t{64} << 20;  // of logits, where that allows
constexpr int64_t kLmHeadChunkRowsMin = 512;

// With the matrix product of kernels/gemm_f32/gemm_f32.h and CrossEntropy:
//
//   logits [tokens, vocab] = x wᵀ, f32
//   loss, z, dlogits       = CrossEntropy(logits)
//   dx                     = dlogits w, rounded once to bf16
//   dw                     = (accumulate_dw ? dw : 0) + dlogitsᵀ x, f32
//
// The bits are those of the three products over all tokens at once, whatever the chunk. With dx
// and dw null, only loss and z are computed: evaluation. The gradient of a token whose target is
// kIgnoredTarget is 0.
//
// Runs on the context's threads; takes chunk * vocab floats from the calling thread's scratch.
struct LmHeadLossArgs {
  float* loss;             // [tokens] cross-entropy of each token
  float* z;                // [tokens] z-loss of each, before its coefficient
  BFloat16* dx;            // [tokens, width], or null
  float* dw;               // [vocab, width], null if dx is
  const BFloat16* x;       // [tokens, width]
  ConstElements w;         // [vocab, width] bf16 or f32
  const int32_t* targets;  // [tokens], as in CrossEntropyArgs
  int64_t tokens;
  int64_t width;
  int64_t vocab;
  float scale;          // as in CrossEntropyArgs
  float z_coefficient;  // as in CrossEntropyArgs
  bool accumulate_dw = false;
  int64_t chunk = 0;  // tokens, a multiple of kDepth; 0: LmHeadChunk's
};
// As many tokens as kLmHeadChunkBytes allow, kLmHeadChunkRowsMin at least.
int64_t LmHeadChunk(int64_t vocab);
void LmHeadLoss(const Context& context, const LmHeadLossArgs& args);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_CROSS_ENTROPY_LM_HEAD_H_
