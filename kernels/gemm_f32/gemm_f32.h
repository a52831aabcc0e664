// SPDX-License-Identifier: Apache-2.0
//
// Matrix product in binary32 with a written order of sums. This header is the contract; its
// definition in scalar code is gemm_f32_ref.cc, the blocked and threaded form gemm_f32.cc. Products
// of int8 matrices are not here but in kernels/gemm_i8.
#ifndef LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_H_
#define LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_H_

#include <cstdint>

#include "kernels/elements.h"

namespace lockstep::kernels {

struct Context;

// An operand, f32 or bf16: the matrix itself, or its transpose, lies in memory by rows.
struct GemmIn {
  ConstElements elements;
  int64_t stride;   // elements from the start of one row in memory to the next
  bool transposed;  // element (i, j) of the operand is at j * stride + i, not at i * stride + j
};
static inline GemmIn Plain(ConstElements elements, int64_t stride) {
  return {.elements = elements, .stride = stride, .transposed = false};
}
static inline GemmIn Transposed(ConstElements elements, int64_t stride) {
  return {.elements = elements, .stride = stride, .transposed = true};
}

// The result, f32 or bf16, by rows.
struct GemmOut {
  FloatElements elements;
  int64_t stride;
};
static inline GemmOut Out(FloatElements elements, int64_t stride) {
  return {.elements = elements, .stride = stride};
}

// c = (accumulate ? c : 0) + a · b.
//
// Each element of c is computed alone, in this order (Dot of kernels/sums.h), all in binary32:
//
//   sum = accumulate ? c[i, j] : +0
//   for k0 = 0, 256, 512, ... below k:
//     acc = +0
//     for kk = k0 ... min(k0 + 256, k) - 1:
//       acc = fma(Snap(a[i, kk]), Snap(b[kk, j]), acc)
//     sum = sum + acc
//   c[i, j] = Canon(sum), rounded once to nearest even if c is bf16
//
// So the result depends neither on tiles nor on threads, and cutting k at multiples of 256 into
// several calls that accumulate gives the bits of the one call.
//
// Tiny numbers: snapped operands make every product, and so every partial sum, a multiple of
// 2^-124: none is subnormal, none needs Canon, and of the final Canon only the NaN rule can act
// (sums that start at +0 never become -0). For that to hold, what c holds when accumulate is set
// must be such a multiple, too: the result of an earlier GemmF32, or zeros.
//
// accumulate needs c in binary32, since a rounded c would remember where k was cut. m, n or k may
// be 0: with k = 0, c becomes Canon(sum) as above. c overlaps neither operand. Strides are at least
// the length of the rows in memory. Any value is allowed, Inf and NaN travel as IEEE says.
struct GemmF32Args {
  GemmOut c;  // [m, n]
  GemmIn a;   // [m, k]
  GemmIn b;   // [k, n]
  int64_t m;
  int64_t n;
  int64_t k;
  bool accumulate = false;
};

// Runs on the context's threads; takes its working memory (packed blocks of both operands, and for
// a bf16 result of more than one block of k the sums of a part of c) from the scratch of the
// calling thread.
void GemmF32(const Context& context, const GemmF32Args& args);

// The same by its definition, one element after the other on the calling thread.
void GemmF32Reference(const GemmF32Args& args);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_H_
