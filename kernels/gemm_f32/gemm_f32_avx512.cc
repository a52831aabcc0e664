// SPDX-License-Identifier: Apache-2.0
//
// The inner kernels of the f32 matrix product for AVX-512: tiles of 4 rows by 6 vectors.
#include "kernels/gemm_f32/gemm_f32_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {
namespace {

struct Tile512 {
  using V = Avx512;
  static constexpr int kVectors = kGemmTileColumnsAvx512 / V::kWidth;

  static void Transpose4(__m512 (&x)[4]) {
    const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1]));
    const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3]));
    const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1]));
    const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
    x[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
    x[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
    x[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
    x[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
  }
  template <int q>
  static void StoreQuad(float* p, __m512 x) {
    _mm_storeu_ps(p, _mm512_extractf32x4_ps(x, q));
  }
};

}  // namespace

void GemmF32PackAvx512(const GemmF32PackArgs& args, Range panels) {
  GemmF32PackBody<Tile512>(args, panels);
}
void GemmF32TilesAvx512(const GemmF32TilesArgs& args, Range tiles) {
  GemmF32TilesBody<Tile512>(args, tiles);
}

}  // namespace lockstep::kernels
