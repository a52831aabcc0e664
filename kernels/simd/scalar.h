// SPDX-License-Identifier: Apache-2.0
//
// The vector interface that generic kernel bodies and formulas are written against, and its
// one-lane form. avx2.h, avx512.h and neon.h are the same interface for their machines: each
// function maps to one primitive of kernels/README.md §1, lane by lane, so a body gives the same
// bits in each.
//
// A backend V has kWidth lanes of binary32 (type F) or int32 (type I), and masks (type M). Pointers
// need no alignment. The types are local to the including file, so that no code compiled for one
// machine can be merged with another's by the linker. Partial accesses take a count n in [0,
// kWidth]: lanes from n on read as zero and are not written.
#ifndef LOCKSTEP_KERNELS_SIMD_SCALAR_H_
#define LOCKSTEP_KERNELS_SIMD_SCALAR_H_

#include <cstdint>

#include "kernels/numeric.h"

namespace lockstep::kernels {

// A count that says: all lanes.
struct All {};

namespace {

struct Scalar {
  static constexpr int kWidth = 1;
  using F = float;
  using I = int32_t;
  using M = bool;

  // Memory. StoreRaw writes the bits as they are: for scratch, or for values that are canonical
  // already.
  static F Load(const float* p, All = {}) { return *p; }
  static F Load(const float* p, int n) { return n > 0 ? *p : 0.0f; }
  static F Load(const BFloat16* p, All = {}) { return kernels::ToFloat(*p); }
  static F Load(const BFloat16* p, int n) { return n > 0 ? kernels::ToFloat(*p) : 0.0f; }
  static void StoreRaw(float* p, F x, All = {}) { *p = x; }
  static void StoreRaw(float* p, F x, int n) {
    if (n > 0) *p = x;
  }
  // p[4 l + w] = lane l of argument w: 4 kWidth floats, as they are.
  static void StoreInterleavedRaw(float* p, F a, F b, F c, F d) {
    p[0] = a;
    p[1] = b;
    p[2] = c;
    p[3] = d;
  }
  static I LoadI(const int32_t* p, All = {}) { return *p; }
  static I LoadI(const int32_t* p, int n) { return n > 0 ? *p : 0; }
  static I LoadI(const int8_t* p, All = {}) { return *p; }
  static I LoadI(const int8_t* p, int n) { return n > 0 ? *p : 0; }
  static void StoreI(int32_t* p, I x, All = {}) { *p = x; }
  static void StoreI(int32_t* p, I x, int n) {
    if (n > 0) *p = x;
  }
  // The low 8 or 16 bits of each lane; the lanes are in range.
  static void StoreI(int8_t* p, I x, All = {}) { *p = static_cast<int8_t>(x); }
  static void StoreI(int8_t* p, I x, int n) {
    if (n > 0) *p = static_cast<int8_t>(x);
  }
  static void StoreLow16(uint16_t* p, I x, All = {}) { *p = static_cast<uint16_t>(x); }
  static void StoreLow16(uint16_t* p, I x, int n) {
    if (n > 0) *p = static_cast<uint16_t>(x);
  }

  // 2 * kWidth elements at once, apart by even and odd place: the cheap way to widen and narrow
  // bf16. Counts n are in [0, 2 * kWidth]. StoreHigh16 writes the high 16 bits of each lane.
  struct Pair {
    F even;
    F odd;
  };
  static Pair LoadPair(const BFloat16* p, All = {}) {
    return {kernels::ToFloat(p[0]), kernels::ToFloat(p[1])};
  }
  static Pair LoadPair(const BFloat16* p, int n) { return {Load(p, n), Load(p + 1, n - 1)}; }
  static void StoreHigh16(uint16_t* p, I even, I odd, All = {}) {
    p[0] = static_cast<uint16_t>(static_cast<uint32_t>(even) >> 16);
    p[1] = static_cast<uint16_t>(static_cast<uint32_t>(odd) >> 16);
  }
  static void StoreHigh16(uint16_t* p, I even, I odd, int n) {
    if (n > 0) p[0] = static_cast<uint16_t>(static_cast<uint32_t>(even) >> 16);
    if (n > 1) p[1] = static_cast<uint16_t>(static_cast<uint32_t>(odd) >> 16);
  }
  // Whether a lane of either is below `bound` > 0 in magnitude, or NaN: so that the common case
  // need not select lane by lane. A machine where the question costs more than it saves says yes.
  static bool AnyBelow(F, F, float) { return true; }
  static bool AnyNan(F, F) { return true; }

  // Floats. Fma(a, b, c) = a * b + c and Fnma(a, b, c) = c - a * b, each rounded once. Min and Max
  // give the second operand unless the comparison holds.
  static F Set(float x) { return x; }
  static F Add(F a, F b) { return a + b; }
  static F Sub(F a, F b) { return a - b; }
  static F Mul(F a, F b) { return a * b; }
  static F Div(F a, F b) { return a / b; }
  static F Sqrt(F a) { return kernels::Sqrt(a); }
  static F Fma(F a, F b, F c) { return kernels::Fma(a, b, c); }
  static F Fnma(F a, F b, F c) { return kernels::Fma(-a, b, c); }
  static F Min(F a, F b) { return kernels::Min(a, b); }
  static F Max(F a, F b) { return kernels::Max(a, b); }
  static F Abs(F a) { return kernels::Abs(a); }
  static M Lt(F a, F b) { return a < b; }
  static M Le(F a, F b) { return a <= b; }
  static M Eq(F a, F b) { return a == b; }
  static M IsNan(F a) { return a != a; }
  static F Select(M m, F a, F b) { return m ? a : b; }
  static M And(M a, M b) { return a && b; }
  static M Or(M a, M b) { return a || b; }
  static M Not(M a) { return !a; }
  static bool Any(M a) { return a; }

  // 32-bit integers, wrapping.
  static I SetI(int32_t x) { return x; }
  static I AddI(I a, I b) {
    return static_cast<I>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
  static I SubI(I a, I b) {
    return static_cast<I>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
  }
  static I MulI(I a, I b) {
    return static_cast<I>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
  }
  static I MulHighU(I a, I b) {
    return static_cast<I>(
        (static_cast<uint64_t>(static_cast<uint32_t>(a)) * static_cast<uint32_t>(b)) >> 32);
  }
  static I AndI(I a, I b) { return a & b; }
  static I OrI(I a, I b) { return a | b; }
  static I XorI(I a, I b) { return a ^ b; }
  static I MinI(I a, I b) { return a < b ? a : b; }
  static I MaxI(I a, I b) { return a > b ? a : b; }
  template <int kBits>
  static I ShiftLeft(I a) {
    return static_cast<I>(static_cast<uint32_t>(a) << kBits);
  }
  template <int kBits>
  static I ShiftRight(I a) {  // logical
    return static_cast<I>(static_cast<uint32_t>(a) >> kBits);
  }
  template <int kBits>
  static I ShiftRightSigned(I a) {
    return a >> kBits;
  }
  static M LtI(I a, I b) { return a < b; }
  static M EqI(I a, I b) { return a == b; }
  static I SelectI(M m, I a, I b) { return m ? a : b; }

  // Conversions. ToInt rounds to nearest even; the lanes are in the range of int32.
  static I AsInt(F a) { return static_cast<I>(Bits(a)); }
  static F AsFloat(I a) { return FromBits(static_cast<uint32_t>(a)); }
  static I ToInt(F a) { return kernels::ToInt(a); }
  static F ToFloat(I a) { return static_cast<F>(a); }

  // Across lanes: lane i += lane i + kWidth / 2, then / 4, ... 1, which is the row sum's fold; and
  // the largest lane.
  static float FoldHalves(F a) { return a; }
  static int32_t MaxLane(I a) { return a; }
};

}  // namespace
}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SIMD_SCALAR_H_
