// SPDX-License-Identifier: Apache-2.0
//
// The primitive operations on one number, from which the scalar references of all kernels are
// built. The vector forms of the same operations are in kernels/simd/; the rules they follow are in
// kernels/README.md §1 and §2.
#ifndef LOCKSTEP_KERNELS_NUMERIC_H_
#define LOCKSTEP_KERNELS_NUMERIC_H_

#ifdef __FAST_MATH__
#error "lockstep must not be compiled with -ffast-math: it changes the bits that kernels promise"
#endif

#include <cstdint>

namespace lockstep::kernels {

// The upper half of a binary32: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
  uint16_t bits;
  friend bool operator==(BFloat16 a, BFloat16 b) { return a.bits == b.bits; }
};

static inline uint32_t Bits(float x) { return __builtin_bit_cast(uint32_t, x); }
static inline float FromBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// a * b + c with one rounding.
static inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float Sqrt(float x) { return __builtin_sqrtf(x); }
static inline float Abs(float x) { return FromBits(Bits(x) & 0x7fffffffu); }

// Compare-and-select, so that NaN and signed zeros have one answer: the second operand unless the
// comparison holds.
static inline float Min(float a, float b) { return a < b ? a : b; }
static inline float Max(float a, float b) { return a > b ? a : b; }

// 1 / sqrt(x) with two correctly rounded operations.
static inline float Rsqrt(float x) { return 1.0f / Sqrt(x); }

constexpr float kCanonBound = 0x1p-125f;
constexpr float kSnapBound = 0x1p-40f;
constexpr float kSnapShift = 0x1.8p-39f;

// What is stored to a tensor: magnitudes below 2^-125 and -0 become +0, every NaN becomes
// 0x7fc00000.
static inline float Canon(float x) {
  if (x != x) return FromBits(0x7fc00000u);
  return Abs(x) < kCanonBound ? 0.0f : x;
}

// What enters a float sum or dot product: tiny values are rounded to a multiple of 2^-62, so that
// every exact product is a multiple of 2^-124 and no partial sum can be subnormal.
static inline float Snap(float x) {
  return Abs(x) < kSnapBound ? (x + kSnapShift) - kSnapShift : x;
}

static inline float ToFloat(BFloat16 x) { return FromBits(static_cast<uint32_t>(x.bits) << 16); }
static inline float ToFloat(float x) { return x; }

// Canonical, then rounded to nearest even in integers. Rounding cannot make a canonical value
// subnormal, and the canonical NaN 0x7fc00000 rounds to 0x7fc0.
static inline BFloat16 ToBFloat16(float x) {
  const uint32_t bits = Bits(Canon(x));
  return BFloat16{static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// Stores in the element type of the tensor: the only way in which kernels write floats.
static inline void Store(float* out, float x) { *out = Canon(x); }
static inline void Store(BFloat16* out, float x) { *out = ToBFloat16(x); }

// Round to nearest even; the caller has clamped x to the range of int32, and x is not NaN.
static inline int32_t ToInt(float x) {
  // From 2^23 on every value is an integer; below, adding and taking away 2^23 with x's sign
  // rounds.
  const float shift = FromBits(0x4b000000u | (Bits(x) & 0x80000000u));
  return static_cast<int32_t>(Abs(x) < 0x1p23f ? (x + shift) - shift : x);
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_NUMERIC_H_
