// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard kernels for AVX-512.
#include "kernels/hadamard/hadamard_body.h"
#include "kernels/hadamard/hadamard_columns_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {
namespace {

struct Avx512Hadamard : Avx512 {
  static constexpr int kLog = 4;  // 16 of 32 registers

  template <int kH>
  static F Exchange(F x) {
    static_assert(kH == 1 || kH == 2 || kH == 4 || kH == 8);
    if constexpr (kH == 1) return _mm512_permute_ps(x, 0xb1);
    if constexpr (kH == 2) return _mm512_permute_ps(x, 0x4e);
    if constexpr (kH == 4) return _mm512_shuffle_f32x4(x, x, 0xb1);
    return _mm512_shuffle_f32x4(x, x, 0x4e);
  }
};

}  // namespace

void HadamardRowsAvx512(const HadamardRowsArgs& args, Range range) {
  HadamardRowsBody<Avx512Hadamard>(args, range);
}
void HadamardColumnsAvx512(const HadamardColumnsArgs& args, Range range) {
  HadamardColumnsBody<Avx512Hadamard>(args, range);
}
void HadamardQuantizeRowsAvx512(const HadamardQuantizeRowsArgs& args, Range range) {
  HadamardQuantizeRowsBody<Avx512Hadamard>(args, range);
}
void HadamardQuantizeColumnsAvx512(const HadamardQuantizeColumnsArgs& args, Range range) {
  HadamardQuantizeColumnsBody<Avx512Hadamard>(args, range);
}

}  // namespace lockstep::kernels
