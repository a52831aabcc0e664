// SPDX-License-Identifier: Apache-2.0
//
// The vector interface of kernels/simd/scalar.h for AVX-512 F, BW, DQ, VL. Include from *_avx512.cc
// only: the type is local to the file, so that no code compiled for AVX-512 can be merged with
// another file's by the linker.
#ifndef LOCKSTEP_KERNELS_SIMD_AVX512_H_
#define LOCKSTEP_KERNELS_SIMD_AVX512_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/simd/scalar.h"

namespace lockstep::kernels {
namespace {

struct Avx512 {
  static constexpr int kWidth = 16;
  using F = __m512;
  using I = __m512i;
  using M = __mmask16;

  static M FirstLanes(int n) { return static_cast<M>((1u << n) - 1u); }
  static F Widen(__m256i bf16) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
  }

  static F Load(const float* p, All = {}) { return _mm512_loadu_ps(p); }
  static F Load(const float* p, int n) { return _mm512_maskz_loadu_ps(FirstLanes(n), p); }
  static F Load(const BFloat16* p, All = {}) {
    return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F Load(const BFloat16* p, int n) {
    return Widen(_mm256_maskz_loadu_epi16(FirstLanes(n), p));
  }
  static void StoreRaw(float* p, F x, All = {}) { _mm512_storeu_ps(p, x); }
  static void StoreRaw(float* p, F x, int n) { _mm512_mask_storeu_ps(p, FirstLanes(n), x); }
  static void StoreInterleavedRaw(float* p, F a, F b, F c, F d) {
    const F ac0 = _mm512_unpacklo_ps(a, c);  // a0 c0 a1 c1 in each quarter
    const F ac1 = _mm512_unpackhi_ps(a, c);
    const F bd0 = _mm512_unpacklo_ps(b, d);
    const F bd1 = _mm512_unpackhi_ps(b, d);
    const F lane[4] = {_mm512_unpacklo_ps(ac0, bd0), _mm512_unpackhi_ps(ac0, bd0),
                       _mm512_unpacklo_ps(ac1, bd1), _mm512_unpackhi_ps(ac1, bd1)};
    // lane[k] holds lanes k, k + 4, k + 8, k + 12: a transposition of quarters is left.
    const F low01 = _mm512_shuffle_f32x4(lane[0], lane[1], 0x44);
    const F high01 = _mm512_shuffle_f32x4(lane[0], lane[1], 0xee);
    const F low23 = _mm512_shuffle_f32x4(lane[2], lane[3], 0x44);
    const F high23 = _mm512_shuffle_f32x4(lane[2], lane[3], 0xee);
    _mm512_storeu_ps(p, _mm512_shuffle_f32x4(low01, low23, 0x88));
    _mm512_storeu_ps(p + 16, _mm512_shuffle_f32x4(low01, low23, 0xdd));
    _mm512_storeu_ps(p + 32, _mm512_shuffle_f32x4(high01, high23, 0x88));
    _mm512_storeu_ps(p + 48, _mm512_shuffle_f32x4(high01, high23, 0xdd));
  }
  static I LoadI(const int32_t* p, All = {}) { return _mm512_loadu_si512(p); }
  static I LoadI(const int32_t* p, int n) { return _mm512_maskz_loadu_epi32(FirstLanes(n), p); }
  static I LoadI(const int8_t* p, All = {}) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I LoadI(const int8_t* p, int n) {
    return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(FirstLanes(n), p));
  }
  static void StoreI(int32_t* p, I x, All = {}) { _mm512_storeu_si512(p, x); }
  static void StoreI(int32_t* p, I x, int n) { _mm512_mask_storeu_epi32(p, FirstLanes(n), x); }
  static void StoreI(int8_t* p, I x, All = {}) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
  }
  static void StoreI(int8_t* p, I x, int n) {
    _mm_mask_storeu_epi8(p, FirstLanes(n), _mm512_cvtepi32_epi8(x));
  }
  static void StoreLow16(uint16_t* p, I x, All = {}) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x));
  }
  static void StoreLow16(uint16_t* p, I x, int n) {
    _mm256_mask_storeu_epi16(p, FirstLanes(n), _mm512_cvtepi32_epi16(x));
  }

  struct Pair {
    F even;
    F odd;
  };
  static __mmask32 FirstHalfLanes(int n) { return static_cast<__mmask32>((uint64_t{1} << n) - 1); }
  static Pair Apart(__m512i bf16) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bf16, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(bf16, _mm512_set1_epi32(-0x10000)))};
  }
  // The high halves of odd and, beneath them, those of even: 0xca is (mask ? odd : even).
  static __m512i Together(I even, I odd) {
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(-0x10000), odd, _mm512_srli_epi32(even, 16),
                                     0xca);
  }
  static Pair LoadPair(const BFloat16* p, All = {}) { return Apart(_mm512_loadu_si512(p)); }
  static Pair LoadPair(const BFloat16* p, int n) {
    return Apart(_mm512_maskz_loadu_epi16(FirstHalfLanes(n), p));
  }
  static void StoreHigh16(uint16_t* p, I even, I odd, All = {}) {
    _mm512_storeu_si512(p, Together(even, odd));
  }
  static void StoreHigh16(uint16_t* p, I even, I odd, int n) {
    _mm512_mask_storeu_epi16(p, FirstHalfLanes(n), Together(even, odd));
  }
  static bool AnyBelow(F even, F odd, float bound) {
    // range with 10: the lesser magnitude, or that of the one that is not NaN.
    return _mm512_cmp_ps_mask(_mm512_range_ps(even, odd, 10), Set(bound), _CMP_LT_OQ) != 0;
  }
  static bool AnyNan(F even, F odd) { return _mm512_cmp_ps_mask(even, odd, _CMP_UNORD_Q) != 0; }

  static F Set(float x) { return _mm512_set1_ps(x); }
  static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm512_div_ps(a, b); }
  static F Sqrt(F a) { return _mm512_sqrt_ps(a); }
  static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F Fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static F Min(F a, F b) { return _mm512_min_ps(a, b); }
  static F Max(F a, F b) { return _mm512_max_ps(a, b); }
  static F Abs(F a) { return _mm512_abs_ps(a); }
  static M Lt(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static M Le(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static M Eq(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static M IsNan(F a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
  static F Select(M m, F a, F b) { return _mm512_mask_blend_ps(m, b, a); }
  static M And(M a, M b) { return static_cast<M>(a & b); }
  static M Or(M a, M b) { return static_cast<M>(a | b); }
  static M Not(M a) { return static_cast<M>(~a); }
  static bool Any(M a) { return a != 0; }

  static I SetI(int32_t x) { return _mm512_set1_epi32(x); }
  static I AddI(I a, I b) { return _mm512_add_epi32(a, b); }
  static I SubI(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I MulI(I a, I b) { return _mm512_mullo_epi32(a, b); }
  static I MulHighU(I a, I b) {
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_blend_epi32(0xaaaa, even, odd);
  }
  static I AndI(I a, I b) { return _mm512_and_si512(a, b); }
  static I OrI(I a, I b) { return _mm512_or_si512(a, b); }
  static I XorI(I a, I b) { return _mm512_xor_si512(a, b); }
  static I MinI(I a, I b) { return _mm512_min_epi32(a, b); }
  static I MaxI(I a, I b) { return _mm512_max_epi32(a, b); }
  template <int kBits>
  static I ShiftLeft(I a) {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  static I ShiftRight(I a) {
    return _mm512_srli_epi32(a, kBits);
  }
  template <int kBits>
  static I ShiftRightSigned(I a) {
    return _mm512_srai_epi32(a, kBits);
  }
  static M LtI(I a, I b) { return _mm512_cmplt_epi32_mask(a, b); }
  static M EqI(I a, I b) { return _mm512_cmpeq_epi32_mask(a, b); }
  static I SelectI(M m, I a, I b) { return _mm512_mask_blend_epi32(m, b, a); }

  static I AsInt(F a) { return _mm512_castps_si512(a); }
  static F AsFloat(I a) { return _mm512_castsi512_ps(a); }
  static I ToInt(F a) { return _mm512_cvtps_epi32(a); }
  static F ToFloat(I a) { return _mm512_cvtepi32_ps(a); }

  static float FoldHalves(F a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  static int32_t MaxLane(I a) { return _mm512_reduce_max_epi32(a); }
};

}  // namespace
}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SIMD_AVX512_H_
