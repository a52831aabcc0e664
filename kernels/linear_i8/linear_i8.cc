// SPDX-License-Identifier: Apache-2.0
//
// The compositions of linear_i8.h. Rotated operands live in the calling thread's scratch.
#include "kernels/linear_i8/linear_i8.h"

#include "kernels/gemm_i8/gemm_i8.h"
#include "kernels/hadamard/hadamard.h"
#include "kernels/quantize/weights.h"
#include "kernels/scratch.h"

namespace lockstep::kernels {
namespace {

// Exact: block is a power of two.
float InverseOf(int64_t block) { return 1.0f / static_cast<float>(block); }

}  // namespace

void PrepareLinearI8(const Context& context, const PrepareLinearI8Args& args) {
  Run(context, QuantizeWeightsArgs{.q = args.q,
                                   .step = args.step,
                                   .clipped = args.clipped,
                                   .w = args.w,
                                   .rows = args.outputs,
                                   .cols = args.inputs});
  const int64_t block = RotationBlock(args.outputs);
  Run(context, HadamardQuantizeColumnsArgs{.q = args.q_rotated,
                                           .scale = args.scale_rotated,
                                           .x = args.q,
                                           .row_scale = args.step,
                                           .rows = args.outputs,
                                           .cols = args.inputs,
                                           .block = block,
                                           .gain = InverseOf(block)});
}

void LinearI8(const Context& context, const LinearI8Args& args) {
  GemmI8(context, {.out_bf16 = args.y,
                   .ld_out = args.outputs,
                   .a = args.xq,
                   .lda = args.inputs,
                   .transpose_a = false,
                   .b = args.q,
                   .ldb = args.inputs,
                   .transpose_b = true,
                   .row_scale = {args.x_step, true},
                   .col_scale = {args.step, false},
                   .m = args.tokens,
                   .n = args.outputs,
                   .k = args.inputs});
}

void LinearI8InputGradient(const Context& context, const LinearI8InputGradientArgs& args) {
  ScratchFrame scratch;
  int8_t* g = scratch.Get<int8_t>(args.tokens * args.outputs);
  float* scale = scratch.Get<float>(args.tokens);
  Run(context, HadamardQuantizeRowsArgs{.q = g,
                                        .scale = scale,
                                        .x = args.dy,
                                        .rows = args.tokens,
                                        .cols = args.outputs,
                                        .block = RotationBlock(args.outputs)});
  GemmI8(context, {.out_bf16 = args.dx,
                   .ld_out = args.inputs,
                   .a = g,
                   .lda = args.outputs,
                   .transpose_a = false,
                   .b = args.q_rotated,
                   .ldb = args.inputs,
                   .transpose_b = false,
                   .row_scale = {scale, false},
                   .col_scale = {args.scale_rotated, false},
                   .m = args.tokens,
                   .n = args.inputs,
                   .k = args.outputs});
}

void LinearI8WeightGradient(const Context& context, const LinearI8WeightGradientArgs& args) {
  const int64_t block = RotationBlock(args.tokens);
  ScratchFrame scratch;
  int8_t* g = scratch.Get<int8_t>(args.tokens * args.outputs);
  float* g_scale = scratch.Get<float>(args.outputs);
  int8_t* h = scratch.Get<int8_t>(args.tokens * args.inputs);
  float* h_scale = scratch.Get<float>(args.inputs);
  Run(context, HadamardQuantizeColumnsArgs{.q = g,
                                           .scale = g_scale,
                                           .x = args.dy,
                                           .rows = args.tokens,
                                           .cols = args.outputs,
                                           .block = block,
                                           .gain = InverseOf(block)});
  Run(context, HadamardQuantizeColumnsArgs{.q = h,
                                           .scale = h_scale,
                                           .x = args.xq,
                                           .rows = args.tokens,
                                           .cols = args.inputs,
                                           .block = block,
                                           .gain = *args.x_step});
  GemmI8(context, {.out_f32 = args.dw,
                   .ld_out = args.inputs,
                   .a = g,
                   .lda = args.outputs,
                   .transpose_a = true,
                   .b = h,
                   .ldb = args.inputs,
                   .transpose_b = false,
                   .row_scale = {g_scale, false},
                   .col_scale = {h_scale, false},
                   .m = args.outputs,
                   .n = args.inputs,
                   .k = args.tokens});
  Run(context, MaskClippedArgs{.gradient = args.dw,
                               .w = args.w,
                               .step = args.step,
                               .clipped = args.clipped,
                               .rows = args.outputs,
                               .cols = args.inputs});
}

}  // namespace lockstep::kernels
