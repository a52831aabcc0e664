// SPDX-License-Identifier: Apache-2.0
//
// The vector interface of kernels/simd/scalar.h for 64-bit ARM's Advanced SIMD. Include from
// *_neon.cc only: the type is local to the file, like those of the other instruction sets.
#ifndef LOCKSTEP_KERNELS_SIMD_NEON_H_
#define LOCKSTEP_KERNELS_SIMD_NEON_H_

#include <arm_neon.h>

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/simd/scalar.h"

namespace lockstep::kernels {
namespace {

struct Neon {
  static constexpr int kWidth = 4;
  using F = float32x4_t;
  using I = int32x4_t;
  using M = uint32x4_t;  // all ones or all zeros in each lane

  template <class T>
  struct Four {
    T at[4];
  };
  template <class T>
  static Four<T> First(const T* p, int n) {
    Four<T> four = {};
    for (int i = 0; i < n; ++i) four.at[i] = p[i];
    return four;
  }
  template <class T>
  static void PutFirst(T* p, const Four<T>& four, int n) {
    for (int i = 0; i < n; ++i) p[i] = four.at[i];
  }

  static F Load(const float* p, All = {}) { return vld1q_f32(p); }
  static F Load(const float* p, int n) { return vld1q_f32(First(p, n).at); }
  static F Load(const BFloat16* p, All = {}) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(&p->bits), 16));
  }
  static F Load(const BFloat16* p, int n) { return Load(First(p, n).at); }
  static void StoreRaw(float* p, F x, All = {}) { vst1q_f32(p, x); }
  static void StoreRaw(float* p, F x, int n) { PutPartial(p, x, n); }
  static void StoreInterleavedRaw(float* p, F a, F b, F c, F d) {
    const float32x4x4_t words = {{a, b, c, d}};
    vst4q_f32(p, words);
  }
  static I LoadI(const int32_t* p, All = {}) { return vld1q_s32(p); }
  static I LoadI(const int32_t* p, int n) { return vld1q_s32(First(p, n).at); }
  static I LoadI(const int8_t* p, All = {}) {
    const I x = {p[0], p[1], p[2], p[3]};
    return x;
  }
  static I LoadI(const int8_t* p, int n) { return LoadI(First(p, n).at); }
  static void StoreI(int32_t* p, I x, All = {}) { vst1q_s32(p, x); }
  static void StoreI(int32_t* p, I x, int n) {
    Four<int32_t> four;
    vst1q_s32(four.at, x);
    PutFirst(p, four, n);
  }
  static void StoreI(int8_t* p, I x, All = {}) {
    const int8x8_t bytes = vmovn_s16(vcombine_s16(vmovn_s32(x), vmovn_s32(x)));
    __builtin_memcpy(p, &bytes, 4);
  }
  static void StoreI(int8_t* p, I x, int n) {
    Four<int8_t> four;
    StoreI(four.at, x);
    PutFirst(p, four, n);
  }
  static void StoreLow16(uint16_t* p, I x, All = {}) {
    vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(x)));
  }
  static void StoreLow16(uint16_t* p, I x, int n) {
    Four<uint16_t> four;
    StoreLow16(four.at, x);
    PutFirst(p, four, n);
  }

  struct Pair {
    F even;
    F odd;
  };
  static Pair Apart(uint32x4_t bf16) {
    return {vreinterpretq_f32_u32(vshlq_n_u32(bf16, 16)),
            vreinterpretq_f32_u32(vandq_u32(bf16, vdupq_n_u32(0xffff0000u)))};
  }
  static uint16x8_t Together(I even, I odd) {
    return vreinterpretq_u16_u32(
        vsriq_n_u32(vreinterpretq_u32_s32(odd), vreinterpretq_u32_s32(even), 16));
  }
  static Pair LoadPair(const BFloat16* p, All = {}) {
    return Apart(vreinterpretq_u32_u16(vld1q_u16(&p->bits)));
  }
  static Pair LoadPair(const BFloat16* p, int n) {
    uint16_t eight[8] = {};
    for (int i = 0; i < n; ++i) eight[i] = p[i].bits;
    return Apart(vreinterpretq_u32_u16(vld1q_u16(eight)));
  }
  static void StoreHigh16(uint16_t* p, I even, I odd, All = {}) {
    vst1q_u16(p, Together(even, odd));
  }
  static void StoreHigh16(uint16_t* p, I even, I odd, int n) {
    uint16_t eight[8];
    vst1q_u16(eight, Together(even, odd));
    for (int i = 0; i < n; ++i) p[i] = eight[i];
  }
  static bool AnyBelow(F, F, float) { return true; }
  static bool AnyNan(F, F) { return true; }

  static F Set(float x) { return vdupq_n_f32(x); }
  static F Add(F a, F b) { return vaddq_f32(a, b); }
  static F Sub(F a, F b) { return vsubq_f32(a, b); }
  static F Mul(F a, F b) { return vmulq_f32(a, b); }
  static F Div(F a, F b) { return vdivq_f32(a, b); }
  static F Sqrt(F a) { return vsqrtq_f32(a); }
  static F Fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  static F Fnma(F a, F b, F c) { return vfmsq_f32(c, a, b); }
  static F Min(F a, F b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static F Max(F a, F b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static F Abs(F a) { return vabsq_f32(a); }
  static M Lt(F a, F b) { return vcltq_f32(a, b); }
  static M Le(F a, F b) { return vcleq_f32(a, b); }
  static M Eq(F a, F b) { return vceqq_f32(a, b); }
  static M IsNan(F a) { return vmvnq_u32(vceqq_f32(a, a)); }
  static F Select(M m, F a, F b) { return vbslq_f32(m, a, b); }
  static M And(M a, M b) { return vandq_u32(a, b); }
  static M Or(M a, M b) { return vorrq_u32(a, b); }
  static M Not(M a) { return vmvnq_u32(a); }
  static bool Any(M a) { return vmaxvq_u32(a) != 0; }

  static I SetI(int32_t x) { return vdupq_n_s32(x); }
  static I AddI(I a, I b) { return vaddq_s32(a, b); }
  static I SubI(I a, I b) { return vsubq_s32(a, b); }
  static I MulI(I a, I b) { return vmulq_s32(a, b); }
  static I MulHighU(I a, I b) {
    const uint32x4_t ua = vreinterpretq_u32_s32(a);
    const uint32x4_t ub = vreinterpretq_u32_s32(b);
    const uint64x2_t low = vmull_u32(vget_low_u32(ua), vget_low_u32(ub));
    const uint64x2_t high = vmull_high_u32(ua, ub);
    return vreinterpretq_s32_u32(vcombine_u32(vshrn_n_u64(low, 32), vshrn_n_u64(high, 32)));
  }
  static I AndI(I a, I b) { return vandq_s32(a, b); }
  static I OrI(I a, I b) { return vorrq_s32(a, b); }
  static I XorI(I a, I b) { return veorq_s32(a, b); }
  static I MinI(I a, I b) { return vminq_s32(a, b); }
  static I MaxI(I a, I b) { return vmaxq_s32(a, b); }
  template <int kBits>
  static I ShiftLeft(I a) {
    return vshlq_n_s32(a, kBits);
  }
  template <int kBits>
  static I ShiftRight(I a) {
    return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), kBits));
  }
  template <int kBits>
  static I ShiftRightSigned(I a) {
    return vshrq_n_s32(a, kBits);
  }
  static M LtI(I a, I b) { return vcltq_s32(a, b); }
  static M EqI(I a, I b) { return vceqq_s32(a, b); }
  static I SelectI(M m, I a, I b) { return vbslq_s32(m, a, b); }

  static I AsInt(F a) { return vreinterpretq_s32_f32(a); }
  static F AsFloat(I a) { return vreinterpretq_f32_s32(a); }
  static I ToInt(F a) { return vcvtnq_s32_f32(a); }
  static F ToFloat(I a) { return vcvtq_f32_s32(a); }

  static float FoldHalves(F a) {
    const float32x2_t two = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static int32_t MaxLane(I a) { return vmaxvq_s32(a); }

 private:
  static void PutPartial(float* p, F x, int n) {
    Four<float> four;
    vst1q_f32(four.at, x);
    PutFirst(p, four, n);
  }
};

}  // namespace
}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SIMD_NEON_H_
