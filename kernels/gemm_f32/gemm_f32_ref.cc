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
  return Snap(At(in.elements, at));
}

}  // namespace

void GemmF32Reference(const GemmF32Args& args) {
  for (int64_t i = 0; i < args.m; ++i) {
    for (int64_t j = 0; j < args.n; ++j) {
      const int64_t at = i * args.c.stride + j;
      const float c = args.accumulate ? static_cast<const float*>(args.c.elements.data)[at] : 0.0f;
      const float sum = Dot(
          args.k, [&](int64_t k) { return At(args.a, i, k); },
          [&](int64_t k) { return At(args.b, k, j); }, c);
      WithFloats(args.c.elements, [&](auto* c_elements) { Store(c_elements + at, sum); });
    }
  }
}

}  // namespace lockstep::kernels
