// SPDX-License-Identifier: Apache-2.0
//
// The int8 linear layer y = x wᵀ: weights quantised by output channel, activations per tensor, and
// the straight-through backward pass with both of its products in int8. Composites of the kernels
// of quantize/, hadamard/ and gemm_i8/, whose headers hold the formulas; no kernel of its own.
//
// N tokens, K input channels, O output channels. The forward pass multiplies x̂ = x_step * xq with
// ŵ[o] = w_step[o] * wq[o]; the backward pass treats quantisation as the identity, except that a
// weight which the forward pass clipped gets no gradient. Activations are never clipped, since
// their step is amax / 127 (kernels/quantize/quantizer.h). So
//   ∇x = ∇y ŵ,    ∇w = ∇yᵀ x̂ where |w| was not clipped, else 0,
// with both factors of each product rotated by Walsh-Hadamard blocks along the contraction index
// and quantised to int8 by the lines that do not run along it. Rotating both sides of a product by
// H leaves it multiplied by H Hᵀ = block, which one side's scale takes back exactly.
// Source: the paper's §3.2.
#ifndef LOCKSTEP_KERNELS_LINEAR_I8_LINEAR_I8_H_
#define LOCKSTEP_KERNELS_LINEAR_I8_LINEAR_I8_H_

#include <cstdint>

#include "kernels/context.h"
#include "kernels/elements.h"

namespace lockstep::kernels {

// The length of the rotated blocks of a contraction index of n elements: the largest power of two
// that divides n, at most 256; 1, which rotates nothing, for odd n.
constexpr int64_t kRotationMax = 256;
constexpr int64_t RotationBlock(int64_t n) {
  int64_t block = 1;
  while (block < kRotationMax && n % (2 * block) == 0) block *= 2;
  return block;
}

// What the weights give once per optimizer step, for any number of passes:
//   q, step, clipped               = QuantizeWeights(w);
//   q_rotated [O, K], scale_rotated = HadamardQuantizeColumns(q with row_scale step), blocks
//                                     RotationBlock(O) down the columns, gain 1 / block.
struct PrepareLinearI8Args {
  int8_t* q;             // [O, K]
  float* step;           // [O]
  int32_t* clipped;      // [O]
  int8_t* q_rotated;     // [O, K]
  float* scale_rotated;  // [K]
  ConstElements w;       // [O, K] bf16 or f32
  int64_t outputs;       // O
  int64_t inputs;        // K
};
void PrepareLinearI8(const Context& context, const PrepareLinearI8Args& args);

// y[n, o] = bf16(Dequantize(sum over k of xq[n, k] * q[o, k], x_step, step[o])). xq and x_step come
// from QuantizeTensor.
struct LinearI8Args {
  BFloat16* y;          // [N, O]
  const int8_t* xq;     // [N, K]
  const float* x_step;  // [1]
  const int8_t* q;      // [O, K]
  const float* step;    // [O]
  int64_t tokens;       // N
  int64_t outputs;      // O
  int64_t inputs;       // K, at most kGemmI8DepthMax
};
void LinearI8(const Context& context, const LinearI8Args& args);

// ∇x: g, s [N] = HadamardQuantizeRows(dy), blocks RotationBlock(O), gain 1;
//     dx[n, k] = bf16(Dequantize(sum over o of g[n, o] * q_rotated[o, k], s[n], scale_rotated[k])).
struct LinearI8InputGradientArgs {
  BFloat16* dx;                // [N, K]
  const BFloat16* dy;          // [N, O]
  const int8_t* q_rotated;     // [O, K]
  const float* scale_rotated;  // [K]
  int64_t tokens;              // N
  int64_t outputs;             // O, at most kGemmI8DepthMax
  int64_t inputs;              // K
};
void LinearI8InputGradient(const Context& context, const LinearI8InputGradientArgs& args);

// ∇w: g, s [O] = HadamardQuantizeColumns(dy), h, t [K] = HadamardQuantizeColumns(xq), blocks
//     RotationBlock(N) of tokens, gain 1 / block for dy and x_step for xq;
//     dw[o, k] = f32(Dequantize(sum over n of g[n, o] * h[n, k], s[o], t[k])); then MaskClipped.
// dw is overwritten.
struct LinearI8WeightGradientArgs {
  float* dw;               // [O, K]
  const BFloat16* dy;      // [N, O]
  const int8_t* xq;        // [N, K], as in the forward pass
  const float* x_step;     // [1]
  ConstElements w;         // [O, K] bf16 or f32, as they were quantised
  const float* step;       // [O]
  const int32_t* clipped;  // [O]
  int64_t tokens;          // N, at most kGemmI8DepthMax
  int64_t outputs;         // O
  int64_t inputs;          // K
};
void LinearI8WeightGradient(const Context& context, const LinearI8WeightGradientArgs& args);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_LINEAR_I8_LINEAR_I8_H_
