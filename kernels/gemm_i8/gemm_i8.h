// SPDX-License-Identifier: Apache-2.0
//
// The matrix product of int8 values, exact in int32: all three products of a quantised linear layer
// (its output and both gradients). The result is raw, or dequantised on its way out by the formula
// of dequantize.h. Quantising, and choosing scales, is not done here.
#ifndef LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_H_
#define LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_H_

#include <cstdint>

#include "kernels/numeric.h"

namespace lockstep::kernels {

struct Context;

// Largest contraction length. A product of two values is at most 127^2 = 16129 in magnitude, so a
// sum of 133,000 is at most 2,145,157,000, below 2^31 - 1: no int32 sum of any of the products, in
// any order, overflows. The caller checks it.
constexpr int64_t kGemmI8DepthMax = 133000;

// One scale for all rows (or columns), or one for each.
struct GemmI8Scale {
  const float* values;  // [1] if single, else [M] (or [N])
  bool single;
};

// P[m, n] = sum over k of A[m, k] * B[k, n], exact, so its order is free; then
//   out_i32[m, n] = P[m, n], or
//   out_f32[m, n] or out_bf16[m, n] = Store(Dequantize(P[m, n], row_scale[m], col_scale[n])), that
//   is
//     s = Canon(row_scale[m] * col_scale[n]); out = Canon(float(P) * s), for bf16 rounded once
//     more, each step in binary32, to nearest even.
//
// Matrices are row-major: element [i, j] stands at data[i * ld + j], ld at least the row's length.
// With transpose_a, memory holds Aᵀ: `a` is [K, M]; with transpose_b, `b` is [N, K]. So
//   Y = X Wᵀ     A = X [tokens, in], B = W [out, in] transposed;
//   ∇X = ∇Y W    A = ∇Y [tokens, out], B = W [out, in] plain;
//   ∇W = ∇Yᵀ X   A = ∇Y [tokens, out] transposed, B = X [tokens, in] plain.
//
// Values are in -127 .. 127: -128 is never stored by the quantiser and is outside the contract. The
// output overlaps no input. Sizes may be 0; with k = 0 P is 0. Elements of out beyond column n of a
// row are not touched.
struct GemmI8Args {
  // Exactly one is not null.
  int32_t* out_i32 = nullptr;    // [M, N]
  float* out_f32 = nullptr;      // [M, N]
  BFloat16* out_bf16 = nullptr;  // [M, N]
  int64_t ld_out;

  const int8_t* a;  // [M, K], or [K, M] if transpose_a
  int64_t lda;
  bool transpose_a;
  const int8_t* b;  // [K, N], or [N, K] if transpose_b
  int64_t ldb;
  bool transpose_b;

  // Read unless the output is out_i32.
  GemmI8Scale row_scale = {nullptr, true};
  GemmI8Scale col_scale = {nullptr, true};

  int64_t m;
  int64_t n;
  int64_t k;  // at most kGemmI8DepthMax
};

// Runs on the context's threads; takes packing buffers from the calling thread's scratch, at most
// about 24 MiB unless k is above 8192 or so (then about 1 KiB for each k).
void GemmI8(const Context& context, const GemmI8Args& args);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_H_
