// SPDX-License-Identifier: Apache-2.0
//
// The int8 matrix product for AVX-512 with VNNI. vpdpbusd multiplies unsigned by signed bytes, so A
// is packed as a + 128 and each column starts at -128 times the sum of its b, which wraps exactly.
#include "kernels/gemm_i8/gemm_i8_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {
namespace {

struct GemmI8Avx512 {
  using V = Avx512;
  static constexpr GemmI8Tile kTile = kGemmI8TileAvx512;
  static constexpr int64_t kLines = 16;
  static constexpr int64_t kGroups = 16;

  // a + 128 as unsigned bytes has the bits of a with the highest one turned over.
  template <bool kIsA>
  static __m512i Biased(__m512i bytes) {
    return kIsA ? _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)) : bytes;
  }

  // A 16 x 16 transposition of groups.
  template <bool kIsA, int64_t lines>
  static void Transpose(const int8_t* source, int64_t ld, std::byte* to, int64_t pitch) {
    __m512i x[16];
    __m512i y[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      x[i] = i < lines ? Biased<kIsA>(_mm512_loadu_si512(source + i * ld)) : _mm512_setzero_si512();
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
      y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
      y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    // x[4 q + j]: in each quarter v of a vector, lines 4 q .. 4 q + 3 of group 4 v + j.
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
      x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
      x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
      x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
      x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
#pragma GCC unroll 16
    for (int j = 0; j < 4; ++j) {
      const __m512i low01 = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x44);
      const __m512i low23 = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x44);
      const __m512i high01 = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xee);
      const __m512i high23 = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xee);
      y[j] = _mm512_shuffle_i32x4(low01, low23, 0x88);
      y[4 + j] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
      y[8 + j] = _mm512_shuffle_i32x4(high01, high23, 0x88);
      y[12 + j] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
    }
    // Ascending, so that what is written beyond the lines is written over.
#pragma GCC unroll 16
    for (int g = 0; g < 16; ++g) _mm512_storeu_si512(to + g * pitch, y[g]);
  }

  static __m128i Load16(const int8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }

  template <bool kIsA>
  static void Interleave(const int8_t* source, int64_t ld, std::byte* to) {
    const __m512i quarters =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i x = _mm512_castsi128_si512(Load16(source));
    x = _mm512_inserti32x4(x, Load16(source + ld), 1);
    x = _mm512_inserti32x4(x, Load16(source + 2 * ld), 2);
    x = _mm512_inserti32x4(x, Load16(source + 3 * ld), 3);
    x = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, x), bytes);
    _mm512_storeu_si512(to, Biased<kIsA>(x));
  }

  // Two sums for each half, so that one addition does not wait for the other.
  static void Correct(const std::byte* panel, int64_t groups, int32_t* corrections) {
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i sums[4] = {};
    for (int64_t g = 0; g + 2 <= groups; g += 2, panel += 256) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        sums[i] = _mm512_dpbusd_epi32(sums[i], ones, _mm512_load_si512(panel + 64 * i));
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      if (groups % 2 != 0) {
        sums[i] = _mm512_dpbusd_epi32(sums[i], ones, _mm512_load_si512(panel + 64 * i));
      }
      const __m512i sum = _mm512_add_epi32(sums[i], sums[i + 2]);
      _mm512_storeu_si512(corrections + 16 * i,
                          _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, 7)));
    }
  }

  // The accumulators stay in registers only if every loop over them is unrolled. Long enough not to
  // be inlined in every place.
  template <int kRows>
  [[gnu::noinline]] static void MultiplyRows(const std::byte* a, const std::byte* b, int64_t groups,
                                             const int32_t* corrections, int32_t* out, int64_t ld) {
    __m512i acc[kRows][2];
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      acc[r][0] = _mm512_loadu_si512(corrections);
      acc[r][1] = _mm512_loadu_si512(corrections + 16);
    }
#pragma GCC unroll 2
    for (int64_t g = 0; g < groups; ++g, a += kTile.rows * 4, b += 128) {
      const __m512i b0 = _mm512_load_si512(b);
      const __m512i b1 = _mm512_load_si512(b + 64);
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
        int32_t group;
        __builtin_memcpy(&group, a + r * 4, 4);
        const __m512i ar = _mm512_set1_epi32(group);
        acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], ar, b0);
        acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], ar, b1);
      }
    }
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      _mm512_storeu_si512(out + r * ld, acc[r][0]);
      _mm512_storeu_si512(out + r * ld + 16, acc[r][1]);
    }
  }

  static void Multiply(int64_t rows, const std::byte* a, const std::byte* b, int64_t groups,
                       const int32_t* corrections, int32_t* out, int64_t ld) {
    if (rows > 8) {
      MultiplyRows<14>(a, b, groups, corrections, out, ld);
    } else if (rows > 4) {
      MultiplyRows<8>(a, b, groups, corrections, out, ld);
    } else {
      MultiplyRows<4>(a, b, groups, corrections, out, ld);
    }
  }
};

}  // namespace

void GemmI8PackAvx512(const GemmI8PackArgs& args, Range range) {
  GemmI8PackBody<GemmI8Avx512>(args, range);
}

void GemmI8MultiplyAvx512(const GemmI8MultiplyArgs& args, Range range) {
  GemmI8MultiplyBody<GemmI8Avx512>(args, range);
}

}  // namespace lockstep::kernels
