// SPDX-License-Identifier: Apache-2.0
//
// The int8 matrix product for AVX2: values are widened to int16 as they are packed, and vpmaddwd
// adds two exact products at a time.
#include "kernels/gemm_i8/gemm_i8_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {
namespace {

struct GemmI8Avx2 {
  using V = Avx2;
  static constexpr GemmI8Tile kTile = kGemmI8TileAvx2;
  static constexpr int64_t kLines = 8;
  static constexpr int64_t kGroups = 8;

  // An 8 x 8 transposition of groups.
  template <bool kIsA, int64_t lines>
  static void Transpose(const int8_t* source, int64_t ld, std::byte* to, int64_t pitch) {
    __m256i x[8];
    __m256i y[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      x[i] = i < lines ? _mm256_cvtepi8_epi16(
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i * ld)))
                       : _mm256_setzero_si256();
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
      y[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
      y[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    }
    // x[4 q + j]: in each half v of a vector, lines 4 q .. 4 q + 3 of group 4 v + j.
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
      x[i] = _mm256_unpacklo_epi64(y[i], y[i + 2]);
      x[i + 1] = _mm256_unpackhi_epi64(y[i], y[i + 2]);
      x[i + 2] = _mm256_unpacklo_epi64(y[i + 1], y[i + 3]);
      x[i + 3] = _mm256_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    // Ascending, so that what is written beyond the lines is written over.
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      const __m256i groups = g < 4 ? _mm256_permute2x128_si256(x[g], x[4 + g], 0x20)
                                   : _mm256_permute2x128_si256(x[g - 4], x[g], 0x31);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + g * pitch), groups);
    }
  }

  template <bool kIsA>
  static void Interleave(const int8_t* source, int64_t ld, std::byte* to) {
    const __m128i even = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source));
    const __m128i odd = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source + ld));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(even, odd)));
  }

  static void Correct(const std::byte*, int64_t, int32_t*) {}

  // The accumulators stay in registers only if every loop over them is unrolled.
  static void Multiply(int64_t, const std::byte* a, const std::byte* b, int64_t groups,
                       const int32_t*, int32_t* out, int64_t ld) {
    constexpr int kRows = kTile.rows;
    __m256i acc[kRows][2];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (int64_t g = 0; g < groups; ++g, a += kRows * 4, b += 64) {
      const __m256i b0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(b));
      const __m256i b1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(b + 32));
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        int32_t group;
        __builtin_memcpy(&group, a + r * 4, 4);
        const __m256i ar = _mm256_set1_epi32(group);
        acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(ar, b0));
        acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(ar, b1));
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + r * ld), acc[r][0]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + r * ld + 8), acc[r][1]);
    }
  }
};

}  // namespace

void GemmI8PackAvx2(const GemmI8PackArgs& args, Range range) {
  GemmI8PackBody<GemmI8Avx2>(args, range);
}

void GemmI8MultiplyAvx2(const GemmI8MultiplyArgs& args, Range range) {
  GemmI8MultiplyBody<GemmI8Avx2>(args, range);
}

}  // namespace lockstep::kernels
