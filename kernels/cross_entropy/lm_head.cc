// SPDX-License-Identifier: Apache-2.0
//
// The chunks of the language-model head.
#include "kernels/cross_entropy/lm_head.h"

#include <algorithm>

#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/scratch.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

void Gradients(const Context& context, const LmHeadLossArgs& args, const float* dlogits,
               int64_t first, int64_t rows) {
  GemmF32(context, {.c = Out(args.dx + first * args.width, args.width),
                    .a = Plain(dlogits, args.vocab),
                    .b = Plain(args.w, args.width),
                    .m = rows,
                    .n = args.width,
                    .k = args.vocab});
  GemmF32(context, {.c = Out(args.dw, args.width),
                    .a = Transposed(dlogits, args.vocab),
                    .b = Plain(args.x + first * args.width, args.width),
                    .m = args.vocab,
                    .n = args.width,
                    .k = rows,
                    .accumulate = args.accumulate_dw || first > 0});
}

}  // namespace

int64_t LmHeadChunk(int64_t vocab) {
  const int64_t row_bytes = std::max<int64_t>(vocab, 1) * static_cast<int64_t>(sizeof(float));
  return std::max(kLmHeadChunkBytes / row_bytes / kDepth * kDepth, kLmHeadChunkRowsMin);
}

void LmHeadLoss(const Context& context, const LmHeadLossArgs& args) {
  const bool gradient = args.dx != nullptr;
  const int64_t chunk = args.chunk > 0 ? args.chunk : LmHeadChunk(args.vocab);
  ScratchFrame scratch;
  float* logits = scratch.Get<float>(std::min(chunk, args.tokens) * args.vocab);
  for (int64_t first = 0; first < args.tokens; first += chunk) {
    const int64_t rows = std::min(chunk, args.tokens - first);
    GemmF32(context, {.c = Out(logits, args.vocab),
                      .a = Plain(args.x + first * args.width, args.width),
                      .b = Transposed(args.w, args.width),
                      .m = rows,
                      .n = args.vocab,
                      .k = args.width});
    Run(context, CrossEntropyArgs{.loss = args.loss + first,
                                  .z = args.z + first,
                                  .logits = logits,
                                  .targets = args.targets + first,
                                  .rows = rows,
                                  .vocab = args.vocab,
                                  .scale = args.scale,
                                  .z_coefficient = args.z_coefficient,
                                  .gradient = gradient});
    if (gradient) Gradients(context, args, logits, first, rows);
  }
}

}  // namespace lockstep::kernels
