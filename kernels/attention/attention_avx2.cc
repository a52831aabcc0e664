// SPDX-License-Identifier: Apache-2.0
//
// Attention for AVX2.
#include "kernels/attention/attention_backward_body.h"
#include "kernels/attention/attention_forward_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {
namespace {

struct AttentionAvx2 : Avx2 {
  static constexpr int kRows = 4;
  static constexpr int kVectors = 2;

  static void Transpose(F (&x)[8]) {
    F y[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
      y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
      x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
      x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
      x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
      x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      y[c] = _mm256_permute2f128_ps(x[c], x[4 + c], 0x20);
      y[4 + c] = _mm256_permute2f128_ps(x[c], x[4 + c], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = y[i];
  }

  // Pairs of products fit 16 bits: 2 * 127 * 127 < 2^15.
  static I Dot4(I sum, I a, I b) {
    const I pairs = _mm256_maddubs_epi16(a, b);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }

  // In binary64, x + 1.5 * 2^52 rounds x to an integer, which then is the difference of the bits.
  static void AddRounded(int64_t* sum, F x) {
    AddRounded4(sum, _mm256_castps256_ps128(x));
    AddRounded4(sum + 4, _mm256_extractf128_ps(x, 1));
  }
  static void AddRounded4(int64_t* sum, __m128 x) {
    const __m256d shift = _mm256_set1_pd(0x1.8p52);
    const __m256i shifted = _mm256_castpd_si256(_mm256_add_pd(_mm256_cvtps_pd(x), shift));
    const __m256i rounded = _mm256_sub_epi64(shifted, _mm256_castpd_si256(shift));
    __m256i* at = reinterpret_cast<__m256i*>(sum);
    _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), rounded));
  }
};

}  // namespace

void AttentionForwardAvx2(const AttentionForwardArgs& args, Range range) {
  AttentionForwardBody<AttentionAvx2>(args, range);
}
void AttentionBackwardAvx2(const AttentionBackwardArgs& args, Range range) {
  AttentionBackwardBody<AttentionAvx2>(args, range);
}

}  // namespace lockstep::kernels
