// SPDX-License-Identifier: Apache-2.0
//
// The inner kernels of the f32 matrix product for AVX2: tiles of 4 rows by 3 vectors.
#include "kernels/gemm_f32/gemm_f32_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {
namespace {

struct Tile256 {
  using V = Avx2;
  static constexpr int kVectors = kGemmTileColumnsAvx2 / V::kWidth;

  static void Transpose4(__m256 (&x)[4]) {
    const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(x[0], x[1]));
    const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(x[2], x[3]));
    const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(x[0], x[1]));
    const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(x[2], x[3]));
    x[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
    x[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
    x[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
    x[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
  }
  template <int q>
  static void StoreQuad(float* p, __m256 x) {
    _mm_storeu_ps(p, _mm256_extractf128_ps(x, q));
  }
};

}  // namespace

void GemmF32PackAvx2(const GemmF32PackArgs& args, Range panels) {
  GemmF32PackBody<Tile256>(args, panels);
}
void GemmF32TilesAvx2(const GemmF32TilesArgs& args, Range tiles) {
  GemmF32TilesBody<Tile256>(args, tiles);
}

}  // namespace lockstep::kernels
