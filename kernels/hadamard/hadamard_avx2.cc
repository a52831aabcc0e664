// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard kernels for AVX2.
#include "kernels/hadamard/hadamard_body.h"
#include "kernels/hadamard/hadamard_columns_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {
namespace {

struct Avx2Hadamard : Avx2 {
  static constexpr int kLog = 3;  // 8 of 16 registers

  template <int kH>
  static F Exchange(F x) {
    static_assert(kH == 1 || kH == 2 || kH == 4);
    if constexpr (kH == 1) return _mm256_permute_ps(x, 0xb1);
    if constexpr (kH == 2) return _mm256_permute_ps(x, 0x4e);
    return _mm256_permute2f128_ps(x, x, 1);
  }
};

}  // namespace

void HadamardRowsAvx2(const HadamardRowsArgs& args, Range range) {
  HadamardRowsBody<Avx2Hadamard>(args, range);
}
void HadamardColumnsAvx2(const HadamardColumnsArgs& args, Range range) {
  HadamardColumnsBody<Avx2Hadamard>(args, range);
}
void HadamardQuantizeRowsAvx2(const HadamardQuantizeRowsArgs& args, Range range) {
  HadamardQuantizeRowsBody<Avx2Hadamard>(args, range);
}
void HadamardQuantizeColumnsAvx2(const HadamardQuantizeColumnsArgs& args, Range range) {
  HadamardQuantizeColumnsBody<Avx2Hadamard>(args, range);
}

}  // namespace lockstep::kernels
