// SPDX-License-Identifier: Apache-2.0
//
// Matrix product in binary32 with a written order of sums. This header is the contract; its
// definition in scalar code is gemm_f32_ref.cc, the blocked and threaded form gemm_f32.cc. Products
// of int8 matrices are not here but in kernels/gemm_i8.
#ifndef LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_H_
#define LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_H_

#include <cstdint>

#include "kernels/numeric.h"

namespace lockstep::kernels {

struct Context;

// What a matrix is made of.
enum class ElementType : uint8_t { kFloat32, kBFloat16 };
constexpr ElementType ElementTypeOf(const float*) { return ElementType::kFloat32; }
constexpr ElementType ElementTypeOf(const BFloat16*) { return ElementType::kBFloat16; }

// An operand: the matrix itself, or its transpose, lies in memory by rows.
struct GemmIn {
  const void* data;
  ElementType type;
  int64_t stride;   // elements from the start of one row in memory to the next
  bool transposed;  // element (i, j) of the operand is data[j * stride + i], not [i * stride + j]
};
template <class T>
constexpr GemmIn Plain(const T* data, int64_t stride) {
  return {.data = data, .type = ElementTypeOf(data), .stride = stride, .transposed = false};
}
template <class T>
constexpr GemmIn Transposed(const T* data, int64_t stride) {
  return {.data = data, .type = ElementTypeOf(data), .stride = stride, .transposed = true};
}

// The result, by rows.
struct GemmOut {
  void* data;
  ElementType type;
  int64_t stride;
};
template <class T>
constexpr GemmOut Out(T* data, int64_t stride) {
  return {.data = data, .type = ElementTypeOf(data), .stride = stride};
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
