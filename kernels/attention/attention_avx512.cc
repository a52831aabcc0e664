// SPDX-License-Identifier: Apache-2.0
//
// Attention for AVX-512 with VNNI.
#include "kernels/attention/attention_backward_body.h"
#include "kernels/attention/attention_forward_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {
namespace {

struct AttentionAvx512 : Avx512 {
  static constexpr int kRows = 8;
  static constexpr int kVectors = 2;

  static void Transpose(F (&x)[16]) {
    F y[16];
    // Pairs, then quads of rows within each group of four lanes.
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
      y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      x[i] = _mm512_shuffle_ps(y[i], y[i + 2], 0x44);
      x[i + 1] = _mm512_shuffle_ps(y[i], y[i + 2], 0xee);
      x[i + 2] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0x44);
      x[i + 3] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
    // Then the groups: x[4a + c] holds in group g column 4g + c of rows 4a .. 4a + 3.
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const F low01 = _mm512_shuffle_f32x4(x[c], x[4 + c], 0x88);   // groups 0, 2 of rows 0, 4
      const F high01 = _mm512_shuffle_f32x4(x[c], x[4 + c], 0xdd);  // groups 1, 3
      const F low23 = _mm512_shuffle_f32x4(x[8 + c], x[12 + c], 0x88);
      const F high23 = _mm512_shuffle_f32x4(x[8 + c], x[12 + c], 0xdd);
      y[c] = _mm512_shuffle_f32x4(low01, low23, 0x88);
      y[4 + c] = _mm512_shuffle_f32x4(high01, high23, 0x88);
      y[8 + c] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
      y[12 + c] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) x[i] = y[i];
  }

  static I Dot4(I sum, I a, I b) { return _mm512_dpbusd_epi32(sum, a, b); }

  static void AddRounded(int64_t* sum, F x) {
    const __m512i low = _mm512_cvtps_epi64(_mm512_castps512_ps256(x));
    const __m512i high = _mm512_cvtps_epi64(_mm512_extractf32x8_ps(x, 1));
    _mm512_storeu_si512(sum, _mm512_add_epi64(_mm512_loadu_si512(sum), low));
    _mm512_storeu_si512(sum + 8, _mm512_add_epi64(_mm512_loadu_si512(sum + 8), high));
  }
};

}  // namespace

void AttentionForwardAvx512(const AttentionForwardArgs& args, Range range) {
  AttentionForwardBody<AttentionAvx512>(args, range);
}
void AttentionBackwardAvx512(const AttentionBackwardArgs& args, Range range) {
  AttentionBackwardBody<AttentionAvx512>(args, range);
}

}  // namespace lockstep::kernels
