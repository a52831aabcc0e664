// SPDX-License-Identifier: Apache-2.0
//
// Sine and cosine in binary32, accurate for every finite argument. The formulas stand here once,
// over the vector interface of kernels/simd/; every instruction set gives the same bits.
//
// Definition, for every one of the 2^32 inputs: NaN and +-Inf -> 0x7fc00000; otherwise x is reduced
// to a quarter turn, x = n pi/2 + (h + l) with |h + l| < 0.7917, as follows; every float operation
// one rounding, fma where written.
//   |x| <= 2^17, with pi/2 = kHalfPi1 + kHalfPi2 + kHalfPi3 + ...:
//     n = fma(x, kTwoOverPi, 1.5 * 2^23) - 1.5 * 2^23
//     r = fma(-n, kHalfPi1, x)                               (exact)
//     p = n * kHalfPi2;  h = r - p
//     l = fma(-n, kHalfPi3, ((r - h) - p) - fma(n, kHalfPi2, -p))
//   |x| > 2^17: ReduceLarge below, in 64-bit integers.
//   z = h h
//   sine   = h + fma(z h, S(z), l)
//   w = 1 - z / 2;  lost = fma(fma(-h, h, z), 1/2, (1 - w) - z / 2)
//   cosine = w + fma(z z, C(z), fma(-h, l, lost))
//   S(z), C(z) of degree 2 by Horner's rule in fma
//   Sin: (n mod 4) of 0, 1, 2, 3 gives sine, cosine, -sine, -cosine; Cos: that of n + 1; then
//   Canon.
// z, z h, l and lost may be subnormal or flushed to 0; each then is added to something at least
// 2^23 times as large and changes nothing. h itself is below 2^-125 only if x is, and Canon settles
// it.
//
// Error: at most 0.97 ulp each.
#ifndef LOCKSTEP_KERNELS_MATH_SIN_COS_H_
#define LOCKSTEP_KERNELS_MATH_SIN_COS_H_

#include "kernels/math/exp.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

constexpr float kQuarterTurnFast = 0x1p17f;
constexpr float kTwoOverPi = 0x1.45f306p-1f;
constexpr float kHalfPi1 = 0x1.921fb6p+0f;
constexpr float kHalfPi2 = -0x1.777a5cp-25f;
constexpr float kHalfPi3 = -0x1.ee59dap-50f;

// 2/pi times 2^-32 in binary: 32 zeros, then its first 224 bits.
static constexpr uint32_t kTwoOverPiBits[8] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                               0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

// x = n pi/2 + high + low. Only n mod 4 is meant.
template <class V>
struct QuarterTurns {
  typename V::I n;
  typename V::F high;
  typename V::F low;
};

// 2^17 < |x| < Inf. x = m 2^e with a 24-bit m; of 2/pi the 96 bits from weight 2^(1-e) downwards
// are all that matter modulo 4 turns of a quarter, to 2^-70. a = the distance from the nearest
// multiple, in units of 2^-62 quarter turns; its highest 24 bits and the next 24 are made floats.
static inline QuarterTurns<Scalar> ReduceLarge(float x) {
  const uint32_t bits = Bits(x);
  const int32_t e = static_cast<int32_t>((bits >> 23) & 0xffu) - 150;
  const uint64_t m = (bits & 0x007fffffu) | 0x00800000u;
  const int32_t position = e + 30;  // of weight 2^(1-e) in kTwoOverPiBits
  uint64_t window[3];
  for (int i = 0; i < 3; ++i) {
    const uint32_t* word = kTwoOverPiBits + position / 32 + i;
    const uint64_t two_words = (static_cast<uint64_t>(word[0]) << 32) | word[1];
    window[i] = (two_words >> (32 - position % 32)) & 0xffffffffu;
  }
  // m times the window, modulo 2^96, without its lowest 32 bits: units of 2^-62 quarter turns.
  const uint64_t turns = (m * window[0] << 32) + m * window[1] + (m * window[2] >> 32);
  const uint64_t n = (turns + (uint64_t{1} << 61)) >> 62;
  const uint64_t rest = turns - (n << 62);
  const bool below = rest >> 63;
  uint64_t a = below ? 0 - rest : rest;
  float unit = 0x1p-22f;  // of a's highest 24 bits, in quarter turns, once a is normalised
  // Never more than 40 times: no float comes closer than 2^-40 to a multiple of pi/2.
  for (; a != 0 && a >> 63 == 0; a <<= 1) unit = unit * 0.5f;
  const float high = static_cast<float>(static_cast<int32_t>(a >> 40)) * unit;
  const float low =
      static_cast<float>(static_cast<int32_t>((a >> 16) & 0xffffffu)) * (unit * 0x1p-24f);
  const float h = high * kHalfPi1;
  const float l = Fma(low, kHalfPi1, Fma(high, kHalfPi2, Fma(high, kHalfPi1, -h)));
  const bool flip = below != (bits >> 31 != 0);
  const int32_t quarters = static_cast<int32_t>(bits >> 31 ? 0 - n : n);
  return {quarters, flip ? -h : h, flip ? -l : l};
}

template <class V>
QuarterTurns<V> ReduceV(typename V::F x) {
  using F = typename V::F;
  const F t = V::Fma(x, V::Set(kTwoOverPi), V::Set(kRoundShift));
  const F n = V::Sub(t, V::Set(kRoundShift));
  const F r = V::Fnma(n, V::Set(kHalfPi1), x);
  const F p = V::Mul(n, V::Set(kHalfPi2));
  const F h = V::Sub(r, p);
  // p - n kHalfPi2 is what p rounded away, with its sign turned.
  const F tail = V::Add(V::Sub(V::Sub(r, h), p), V::Fnma(n, V::Set(kHalfPi2), p));
  QuarterTurns<V> turns = {V::AsInt(t), h, V::Fnma(n, V::Set(kHalfPi3), tail)};
  const F size = V::Abs(x);
  const typename V::M large =
      V::And(V::Lt(V::Set(kQuarterTurnFast), size), V::Lt(size, V::AsFloat(V::SetI(0x7f800000))));
  if (V::Any(large)) {
    float at[V::kWidth], high[V::kWidth], low[V::kWidth];
    int32_t quarters[V::kWidth];
    V::StoreRaw(at, x);
    V::StoreRaw(high, turns.high);
    V::StoreRaw(low, turns.low);
    V::StoreI(quarters, turns.n);
    for (int i = 0; i < V::kWidth; ++i) {
      if (!(Abs(at[i]) > kQuarterTurnFast) || Bits(Abs(at[i])) >= 0x7f800000u) continue;
      const QuarterTurns<Scalar> one = ReduceLarge(at[i]);
      quarters[i] = one.n;
      high[i] = one.high;
      low[i] = one.low;
    }
    turns = {V::LoadI(quarters), V::Load(high), V::Load(low)};
  }
  return turns;
}

// The sine of turns + quarters more quarter turns.
template <class V>
typename V::F SinOfTurnsV(typename V::F x, int32_t quarters) {
  using F = typename V::F;
  using I = typename V::I;
  const QuarterTurns<V> turns = ReduceV<V>(x);
  const F h = turns.high;
  const F z = V::Mul(h, h);
  F s = V::Set(-0x1.9919e0p-13f);
  s = V::Fma(s, z, V::Set(0x1.1106c2p-7f));
  s = V::Fma(s, z, V::Set(-0x1.555544p-3f));
  const F sine = V::Add(h, V::Fma(V::Mul(z, h), s, turns.low));
  F c = V::Set(0x1.99db8ep-16f);
  c = V::Fma(c, z, V::Set(-0x1.6c0c0ep-10f));
  c = V::Fma(c, z, V::Set(0x1.55554ap-5f));
  const F half = V::Mul(z, V::Set(0.5f));
  const F w = V::Sub(V::Set(1.0f), half);
  const F lost = V::Fma(V::Fnma(h, h, z), V::Set(0.5f), V::Sub(V::Sub(V::Set(1.0f), w), half));
  const F cosine = V::Add(w, V::Fma(V::Mul(z, z), c, V::Fnma(h, turns.low, lost)));
  const I n = V::AddI(turns.n, V::SetI(quarters));
  const F picked = V::Select(V::EqI(V::AndI(n, V::SetI(1)), V::SetI(0)), sine, cosine);
  const I sign = V::template ShiftLeft<30>(V::AndI(n, V::SetI(2)));
  const F y = V::AsFloat(V::XorI(V::AsInt(picked), sign));
  const typename V::M finite = V::Lt(V::Abs(x), V::AsFloat(V::SetI(0x7f800000)));
  return CanonV<V>(V::Select(finite, y, V::AsFloat(V::SetI(0x7fc00000))));
}

template <class V>
typename V::F SinV(typename V::F x) {
  return SinOfTurnsV<V>(x, 0);
}

template <class V>
typename V::F CosV(typename V::F x) {
  return SinOfTurnsV<V>(x, 1);
}

static inline float Sin(float x) { return SinV<Scalar>(x); }
static inline float Cos(float x) { return CosV<Scalar>(x); }

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_SIN_COS_H_
