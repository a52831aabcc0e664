// SPDX-License-Identifier: Apache-2.0
//
// The int8 matrix product for 64-bit ARM with the dot product extension: sdot multiplies signed
// bytes and adds four products exactly.
#include "kernels/gemm_i8/gemm_i8_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {
namespace {

struct GemmI8Neon {
  using V = Neon;
  static constexpr GemmI8Tile kTile = kGemmI8TileNeon;
  static constexpr int64_t kLines = 4;
  static constexpr int64_t kGroups = 4;

  static void Put(std::byte* to, int64x2_t groups) {
    vst1q_s8(reinterpret_cast<int8_t*>(to), vreinterpretq_s8_s64(groups));
  }

  // A 4 x 4 transposition of groups.
  template <bool kIsA, int64_t lines>
  static void Transpose(const int8_t* source, int64_t ld, std::byte* to, int64_t pitch) {
    static_assert(lines == 4);
    const int32x4_t x0 = vreinterpretq_s32_s8(vld1q_s8(source));
    const int32x4_t x1 = vreinterpretq_s32_s8(vld1q_s8(source + ld));
    const int32x4_t x2 = vreinterpretq_s32_s8(vld1q_s8(source + 2 * ld));
    const int32x4_t x3 = vreinterpretq_s32_s8(vld1q_s8(source + 3 * ld));
    const int64x2_t even01 = vreinterpretq_s64_s32(vtrn1q_s32(x0, x1));
    const int64x2_t odd01 = vreinterpretq_s64_s32(vtrn2q_s32(x0, x1));
    const int64x2_t even23 = vreinterpretq_s64_s32(vtrn1q_s32(x2, x3));
    const int64x2_t odd23 = vreinterpretq_s64_s32(vtrn2q_s32(x2, x3));
    Put(to, vtrn1q_s64(even01, even23));
    Put(to + pitch, vtrn1q_s64(odd01, odd23));
    Put(to + 2 * pitch, vtrn2q_s64(even01, even23));
    Put(to + 3 * pitch, vtrn2q_s64(odd01, odd23));
  }

  template <bool kIsA>
  static void Interleave(const int8_t* source, int64_t ld, std::byte* to) {
    alignas(16) int8_t rows[16];
    for (int i = 0; i < 4; ++i) __builtin_memcpy(rows + 4 * i, source + i * ld, 4);
    const uint8x16_t order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    vst1q_s8(reinterpret_cast<int8_t*>(to), vqtbl1q_s8(vld1q_s8(rows), order));
  }

  static void Correct(const std::byte*, int64_t, int32_t*) {}

  static int8x16_t Groups(const std::byte* p) {
    return vld1q_s8(reinterpret_cast<const int8_t*>(p));
  }

  template <int kLane>
  static void Row(int32x4_t (&acc)[3], int8x16_t a, int8x16_t b0, int8x16_t b1, int8x16_t b2) {
    acc[0] = vdotq_laneq_s32(acc[0], b0, a, kLane);
    acc[1] = vdotq_laneq_s32(acc[1], b1, a, kLane);
    acc[2] = vdotq_laneq_s32(acc[2], b2, a, kLane);
  }

  // The accumulators stay in registers only if every loop over them is unrolled.
  static void Multiply(int64_t, const std::byte* a, const std::byte* b, int64_t groups,
                       const int32_t*, int32_t* out, int64_t ld) {
    int32x4_t acc[8][3];
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) acc[r][0] = acc[r][1] = acc[r][2] = vdupq_n_s32(0);
    for (int64_t g = 0; g < groups; ++g, a += 32, b += 48) {
      const int8x16_t b0 = Groups(b);
      const int8x16_t b1 = Groups(b + 16);
      const int8x16_t b2 = Groups(b + 32);
      const int8x16_t low = Groups(a);
      const int8x16_t high = Groups(a + 16);
      Row<0>(acc[0], low, b0, b1, b2);
      Row<1>(acc[1], low, b0, b1, b2);
      Row<2>(acc[2], low, b0, b1, b2);
      Row<3>(acc[3], low, b0, b1, b2);
      Row<0>(acc[4], high, b0, b1, b2);
      Row<1>(acc[5], high, b0, b1, b2);
      Row<2>(acc[6], high, b0, b1, b2);
      Row<3>(acc[7], high, b0, b1, b2);
    }
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      vst1q_s32(out + r * ld, acc[r][0]);
      vst1q_s32(out + r * ld + 4, acc[r][1]);
      vst1q_s32(out + r * ld + 8, acc[r][2]);
    }
  }
};

}  // namespace

void GemmI8PackNeon(const GemmI8PackArgs& args, Range range) {
  GemmI8PackBody<GemmI8Neon>(args, range);
}

void GemmI8MultiplyNeon(const GemmI8MultiplyArgs& args, Range range) {
  GemmI8MultiplyBody<GemmI8Neon>(args, range);
}

}  // namespace lockstep::kernels
