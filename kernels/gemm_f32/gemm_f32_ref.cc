// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the f32 matrix product.
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

// Element (row, column) of an operand, snapped.
float At(const GemmIn& in, int64_t row, int64_t column) {
  const int64_t at = in.transposed ? column * in.stride + row : row * in.stride + column;
  if (in.type == ElementType::kFloat32) return Snap(static_cast<const float*>(in.data)[at]);
  return Snap(ToFloat(static_cast<const BFloat16*>(in.data)[at]));
}

}  // namespace

void GemmF32Reference(const GemmF32Args& args) {
  for (int64_t i = 0; i < args.m; ++i) {
    for (int64_t j = 0; j < args.n; ++j) {
      const int64_t at = i * args.c.stride + j;
      const float c = args.accumulate ? static_cast<const float*>(args.c.data)[at] : 0.0f;
      const float sum = Dot(
          args.k, [&](int64_t k) { return At(args.a, i, k); },
          [&](int64_t k) { return At(args.b, k, j); }, c);
      if (args.c.type == ElementType::kFloat32) {
        Store(static_cast<float*>(args.c.data) + at, sum);
      } else {
        Store(static_cast<BFloat16*>(args.c.data) + at, sum);
      }
    }
  }
}

}  // namespace lockstep::kernels
