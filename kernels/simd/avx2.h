// SPDX-License-Identifier: Apache-2.0
//
// The vector interface of kernels/simd/scalar.h for AVX2 and FMA. Include from *_avx2.cc only: the
// type is local to the file, so that no code compiled for AVX2 can be merged with another file's by
// the linker.
#ifndef LOCKSTEP_KERNELS_SIMD_AVX2_H_
#define LOCKSTEP_KERNELS_SIMD_AVX2_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/simd/scalar.h"

namespace lockstep::kernels {
namespace {

struct Avx2 {
  static constexpr int kWidth = 8;
  using F = __m256;
  using I = __m256i;
  using M = __m256;  // all ones or all zeros in each lane

  static M FirstLanes(int n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
  }
  template <class T>
  static __m256i LoadBytes(const T* p, int n) {
    alignas(32) T buffer[32 / sizeof(T)] = {};
    for (int i = 0; i < n; ++i) buffer[i] = p[i];
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(buffer));
  }
  template <class T>
  static void StoreBytes(T* p, __m256i x, int n) {
    alignas(32) T buffer[32 / sizeof(T)];
    _mm256_store_si256(reinterpret_cast<__m256i*>(buffer), x);
    for (int i = 0; i < n; ++i) p[i] = buffer[i];
  }
  static __m128i Low(__m256i x) { return _mm256_castsi256_si128(x); }
  static F Widen(__m128i bf16) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16));
  }
  // The low 16 bits of the 8 lanes, in order, in the low half.
  static __m128i Narrow16(I x) {
    const __m256i low = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
    return _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  }
  static __m128i Narrow8(I x) {
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return _mm_packs_epi16(words, words);
  }

  static F Load(const float* p, All = {}) { return _mm256_loadu_ps(p); }
  static F Load(const float* p, int n) {
    return _mm256_maskload_ps(p, _mm256_castps_si256(FirstLanes(n)));
  }
  static F Load(const BFloat16* p, All = {}) {
    return Widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F Load(const BFloat16* p, int n) { return Widen(Low(LoadBytes(&p->bits, n))); }
  static void StoreRaw(float* p, F x, All = {}) { _mm256_storeu_ps(p, x); }
  static void StoreRaw(float* p, F x, int n) {
    _mm256_maskstore_ps(p, _mm256_castps_si256(FirstLanes(n)), x);
  }
  static void StoreInterleavedRaw(float* p, F a, F b, F c, F d) {
    const F ac0 = _mm256_unpacklo_ps(a, c);  // a0 c0 a1 c1 in each half
    const F ac1 = _mm256_unpackhi_ps(a, c);
    const F bd0 = _mm256_unpacklo_ps(b, d);
    const F bd1 = _mm256_unpackhi_ps(b, d);
    const F lane04 = _mm256_unpacklo_ps(ac0, bd0);
    const F lane15 = _mm256_unpackhi_ps(ac0, bd0);
    const F lane26 = _mm256_unpacklo_ps(ac1, bd1);
    const F lane37 = _mm256_unpackhi_ps(ac1, bd1);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(lane04, lane15, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(lane26, lane37, 0x20));
    _mm256_storeu_ps(p + 16, _mm256_permute2f128_ps(lane04, lane15, 0x31));
    _mm256_storeu_ps(p + 24, _mm256_permute2f128_ps(lane26, lane37, 0x31));
  }
  static I LoadI(const int32_t* p, All = {}) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static I LoadI(const int32_t* p, int n) {
    return _mm256_maskload_epi32(p, _mm256_castps_si256(FirstLanes(n)));
  }
  static I LoadI(const int8_t* p, All = {}) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static I LoadI(const int8_t* p, int n) { return _mm256_cvtepi8_epi32(Low(LoadBytes(p, n))); }
  static void StoreI(int32_t* p, I x, All = {}) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  static void StoreI(int32_t* p, I x, int n) {
    _mm256_maskstore_epi32(p, _mm256_castps_si256(FirstLanes(n)), x);
  }
  static void StoreI(int8_t* p, I x, All = {}) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), Narrow8(x));
  }
  static void StoreI(int8_t* p, I x, int n) {
    StoreBytes(p, _mm256_castsi128_si256(Narrow8(x)), n);
  }
  static void StoreLow16(uint16_t* p, I x, All = {}) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), Narrow16(x));
  }
  static void StoreLow16(uint16_t* p, I x, int n) {
    StoreBytes(p, _mm256_castsi128_si256(Narrow16(x)), n);
  }

  struct Pair {
    F even;
    F odd;
  };
  static Pair Apart(__m256i bf16) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(bf16, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(bf16, _mm256_set1_epi32(-0x10000)))};
  }
  static __m256i Together(I even, I odd) {
    return _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
  }
  static Pair LoadPair(const BFloat16* p, All = {}) {
    return Apart(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Pair LoadPair(const BFloat16* p, int n) { return Apart(LoadBytes(&p->bits, n)); }
  static void StoreHigh16(uint16_t* p, I even, I odd, All = {}) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), Together(even, odd));
  }
  static void StoreHigh16(uint16_t* p, I even, I odd, int n) {
    StoreBytes(p, Together(even, odd), n);
  }
  static bool AnyBelow(F even, F odd, float bound) {
    // As integers, where NaN is the largest.
    const I least = _mm256_min_epi32(AsInt(Abs(even)), AsInt(Abs(odd)));
    return Any(LtI(least, _mm256_set1_epi32(static_cast<int32_t>(Bits(bound)))));
  }
  static bool AnyNan(F even, F odd) { return Any(_mm256_cmp_ps(even, odd, _CMP_UNORD_Q)); }

  static F Set(float x) { return _mm256_set1_ps(x); }
  static F Add(F a, F b) { return _mm256_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm256_div_ps(a, b); }
  static F Sqrt(F a) { return _mm256_sqrt_ps(a); }
  static F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F Fnma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static F Min(F a, F b) { return _mm256_min_ps(a, b); }
  static F Max(F a, F b) { return _mm256_max_ps(a, b); }
  static F Abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static M Lt(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static M Le(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  static M Eq(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static M IsNan(F a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
  static F Select(M m, F a, F b) { return _mm256_blendv_ps(b, a, m); }
  static M And(M a, M b) { return _mm256_and_ps(a, b); }
  static M Or(M a, M b) { return _mm256_or_ps(a, b); }
  static M Not(M a) { return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
  static bool Any(M a) { return _mm256_movemask_ps(a) != 0; }

  static I SetI(int32_t x) { return _mm256_set1_epi32(x); }
  static I AddI(I a, I b) { return _mm256_add_epi32(a, b); }
  static I SubI(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I MulI(I a, I b) { return _mm256_mullo_epi32(a, b); }
  static I MulHighU(I a, I b) {
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(even, odd, 0xaa);
  }
  static I AndI(I a, I b) { return _mm256_and_si256(a, b); }
  static I OrI(I a, I b) { return _mm256_or_si256(a, b); }
  static I XorI(I a, I b) { return _mm256_xor_si256(a, b); }
  static I MinI(I a, I b) { return _mm256_min_epi32(a, b); }
  static I MaxI(I a, I b) { return _mm256_max_epi32(a, b); }
  template <int kBits>
  static I ShiftLeft(I a) {
    return _mm256_slli_epi32(a, kBits);
  }
  template <int kBits>
  static I ShiftRight(I a) {
    return _mm256_srli_epi32(a, kBits);
  }
  template <int kBits>
  static I ShiftRightSigned(I a) {
    return _mm256_srai_epi32(a, kBits);
  }
  static M LtI(I a, I b) { return _mm256_castsi256_ps(_mm256_cmpgt_epi32(b, a)); }
  static M EqI(I a, I b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
  static I SelectI(M m, I a, I b) { return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m)); }

  static I AsInt(F a) { return _mm256_castps_si256(a); }
  static F AsFloat(I a) { return _mm256_castsi256_ps(a); }
  static I ToInt(F a) { return _mm256_cvtps_epi32(a); }
  static F ToFloat(I a) { return _mm256_cvtepi32_ps(a); }

  static float FoldHalves(F a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  static int32_t MaxLane(I a) {
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
};

}  // namespace
}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SIMD_AVX2_H_
