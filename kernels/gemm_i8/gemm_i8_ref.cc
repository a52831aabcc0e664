// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the int8 matrix product.
#include "kernels/gemm_i8/dequantize.h"
#include "kernels/gemm_i8/gemm_i8_inner.h"

namespace lockstep::kernels {
namespace {

int32_t Product(const GemmI8Args& args, int64_t m, int64_t n) {
  int32_t sum = 0;
  for (int64_t k = 0; k < args.k; ++k) {
    const int8_t a = args.transpose_a ? args.a[k * args.lda + m] : args.a[m * args.lda + k];
    const int8_t b = args.transpose_b ? args.b[n * args.ldb + k] : args.b[k * args.ldb + n];
    sum += int32_t{a} * int32_t{b};
  }
  return sum;
}

float ScaleAt(const GemmI8Scale& scale, int64_t i) { return scale.values[scale.single ? 0 : i]; }

}  // namespace

void GemmI8Reference(const GemmI8Args& args) {
  for (int64_t m = 0; m < args.m; ++m) {
    for (int64_t n = 0; n < args.n; ++n) {
      const int32_t p = Product(args, m, n);
      const int64_t at = m * args.ld_out + n;
      if (args.out_i32 != nullptr) {
        args.out_i32[at] = p;
        continue;
      }
      const float x = Dequantize(p, ScaleAt(args.row_scale, m), ScaleAt(args.col_scale, n));
      if (args.out_f32 != nullptr) {
        Store(&args.out_f32[at], x);
      } else {
        Store(&args.out_bf16[at], x);
      }
    }
  }
}

}  // namespace lockstep::kernels
