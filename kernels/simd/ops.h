// SPDX-License-Identifier: Apache-2.0
//
// The rules of kernels/README.md §2 and §3 over a vector backend V: canonical stores, snapped
// operands, row sums. The same definitions on one number are in kernels/numeric.h and
// kernels/sums.h.
#ifndef LOCKSTEP_KERNELS_SIMD_OPS_H_
#define LOCKSTEP_KERNELS_SIMD_OPS_H_

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/simd/scalar.h"
#include "kernels/sums.h"

namespace lockstep::kernels {

template <class V>
typename V::F CanonV(typename V::F x) {
  const typename V::F settled = V::Select(V::Lt(V::Abs(x), V::Set(kCanonBound)), V::Set(0.0f), x);
  return V::Select(V::IsNan(x), V::AsFloat(V::SetI(0x7fc00000)), settled);
}

// Canon but for NaN, which stays as it is: enough for an intermediate, as what is stored in the end
// goes through CanonV.
template <class V>
typename V::F FlushV(typename V::F x) {
  return V::Select(V::Lt(V::Abs(x), V::Set(kCanonBound)), V::Set(0.0f), x);
}

template <class V>
typename V::F SnapV(typename V::F x) {
  const typename V::F shift = V::Set(kSnapShift);
  return V::Select(V::Lt(V::Abs(x), V::Set(kSnapBound)), V::Sub(V::Add(x, shift), shift), x);
}

// Canonical stores of n lanes (n = All{} or a count).
template <class V, class N>
void StoreV(float* p, typename V::F x, N n) {
  V::StoreRaw(p, CanonV<V>(x), n);
}
// The bits of a canonical x, rounded to nearest even at bit 16.
template <class V>
typename V::I RoundBf16V(typename V::F x) {
  const typename V::I bits = V::AsInt(x);
  const typename V::I odd = V::AndI(V::template ShiftRight<16>(bits), V::SetI(1));
  return V::AddI(bits, V::AddI(odd, V::SetI(0x7fff)));
}
template <class V, class N>
void StoreV(BFloat16* p, typename V::F x, N n) {
  V::StoreLow16(&p->bits, V::template ShiftRight<16>(RoundBf16V<V>(CanonV<V>(x))), n);
}
// fn on the even elements and on the odd ones.
template <class V, class Fn, class... Pairs>
typename V::Pair Both(Fn&& fn, Pairs... x) {
  return {fn(x.even...), fn(x.odd...)};
}

// FlushV, SnapV and StoreV on pairs. Hardly ever does a value need one of them, so the lanes are
// asked together whether any does.
template <class V>
typename V::Pair FlushPairV(typename V::Pair x) {
  if (!V::AnyBelow(x.even, x.odd, kCanonBound)) [[likely]]
    return x;
  return {FlushV<V>(x.even), FlushV<V>(x.odd)};
}
template <class V>
typename V::Pair SnapPairV(typename V::Pair x) {
  if (!V::AnyBelow(x.even, x.odd, kSnapBound)) [[likely]]
    return x;
  return {SnapV<V>(x.even), SnapV<V>(x.odd)};
}
template <class V, class N>
void StorePairV(BFloat16* p, typename V::Pair x, N n) {
  if (V::AnyBelow(x.even, x.odd, kCanonBound) || V::AnyNan(x.even, x.odd)) [[unlikely]] {
    x = {CanonV<V>(x.even), CanonV<V>(x.odd)};
  }
  V::StoreHigh16(&p->bits, RoundBf16V<V>(x.even), RoundBf16V<V>(x.odd), n);
}

// Puts count floats in the order of pairs: of each 2 * kWidth, the even ones and then the odd ones.
// `out` holds PairedCount(count) floats; those past the end are +0. RestorePairs is the way
// back.
template <class V>
int64_t PairedCount(int64_t count) {
  return (count + 2 * V::kWidth - 1) / (2 * V::kWidth) * (2 * V::kWidth);
}
template <class V>
void ArrangePairs(float* out, const BFloat16* in, int64_t count) {
  constexpr int kStep = 2 * V::kWidth;
  for (int64_t i = 0; i < count; i += kStep) {
    const typename V::Pair x =
        i + kStep <= count ? V::LoadPair(in + i) : V::LoadPair(in + i, static_cast<int>(count - i));
    V::StoreRaw(out + i, x.even);
    V::StoreRaw(out + i + V::kWidth, x.odd);
  }
}
template <class V>
void ArrangePairs(float* out, const float* in, int64_t count) {
  constexpr int kStep = 2 * V::kWidth;
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (int j = 0; j < V::kWidth; ++j) {
      out[i + j] = in[i + 2 * j];
      out[i + V::kWidth + j] = in[i + 2 * j + 1];
    }
  }
  for (int j = 0; i < count && j < V::kWidth; ++j) {
    out[i + j] = i + 2 * j < count ? in[i + 2 * j] : 0.0f;
    out[i + V::kWidth + j] = i + 2 * j + 1 < count ? in[i + 2 * j + 1] : 0.0f;
  }
}
template <class V>
void RestorePairs(float* out, const float* arranged, int64_t count) {
  constexpr int kStep = 2 * V::kWidth;
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (int j = 0; j < V::kWidth; ++j) {
      out[i + 2 * j] = arranged[i + j];
      out[i + 2 * j + 1] = arranged[i + V::kWidth + j];
    }
  }
  for (int j = 0; i + j < count; ++j) out[i + j] = arranged[i + j / 2 + j % 2 * V::kWidth];
}
template <class V>
typename V::Pair LoadPaired(const float* arranged) {
  return {V::Load(arranged), V::Load(arranged + V::kWidth)};
}

// body(i, n) for i = begin, begin + kWidth, ...: n is All{} while a whole vector is left, then the
// count that is.
template <class V, class Body>
void ForEachVector(int64_t begin, int64_t end, Body&& body) {
  int64_t i = begin;
  for (; i + V::kWidth <= end; i += V::kWidth) body(i, All{});
  if (i < end) body(i, static_cast<int>(end - i));
}

// The same in steps of 2 * kWidth, for pairs.
template <class V, class Body>
void ForEachPair(int64_t begin, int64_t end, Body&& body) {
  int64_t i = begin;
  for (; i + 2 * V::kWidth <= end; i += 2 * V::kWidth) body(i, All{});
  if (i < end) body(i, static_cast<int>(end - i));
}

// The 32 lanes of a row sum in vectors of V.
template <class V>
struct RowLanes {
  static constexpr int kRegisters = kLanes / V::kWidth;
  typename V::F at[kRegisters];

  RowLanes() {
    for (auto& lanes : at) lanes = V::Set(0.0f);
  }
  // Lane i += lane i + 16, then 8, 4, 2, 1.
  float Fold() const {
    typename V::F folded[kRegisters];
    for (int r = 0; r < kRegisters; ++r) folded[r] = at[r];
    for (int half = kRegisters / 2; half > 0; half /= 2) {
      for (int r = 0; r < half; ++r) folded[r] = V::Add(folded[r], folded[r + half]);
    }
    return V::FoldHalves(folded[0]);
  }
};

// SumByLanes of kernels/sums.h: step(lanes, i, n) returns lanes plus what elements i .. i + n - 1
// add. Lanes beyond n must be given back unchanged, which adding +0 does.
template <class V, class Step>
float SumByLanesV(int64_t n, Step&& step) {
  float total = 0.0f;
  for (int64_t run = 0; run < n; run += kRun) {
    const int64_t end = run + kRun < n ? run + kRun : n;
    RowLanes<V> lanes;
    int64_t i = run;
    for (; i + kLanes <= end; i += kLanes) {
      for (int r = 0; r < RowLanes<V>::kRegisters; ++r) {
        lanes.at[r] = step(lanes.at[r], i + r * V::kWidth, All{});
      }
    }
    for (int r = 0; i < end; ++r, i += V::kWidth) {
      lanes.at[r] =
          step(lanes.at[r], i, static_cast<int>(end - i < V::kWidth ? end - i : V::kWidth));
    }
    total = total + lanes.Fold();
  }
  return total;
}

// RowSum and RowDot of kernels/sums.h: a(i, n) gives n snapped elements from i on, zeros beyond.
template <class V, class A>
float RowSumV(int64_t n, A&& a) {
  return SumByLanesV<V>(
      n, [&](typename V::F lanes, int64_t i, auto count) { return V::Add(lanes, a(i, count)); });
}
template <class V, class A, class B>
float RowDotV(int64_t n, A&& a, B&& b) {
  return SumByLanesV<V>(n, [&](typename V::F lanes, int64_t i, auto count) {
    return V::Fma(a(i, count), b(i, count), lanes);
  });
}

// The 32 lanes of a row sum, the even ones and the odd ones apart. Folding by halves keeps them
// apart until the last step, lane 0 += lane 1.
template <class V>
struct PairLanes {
  static constexpr int kPairs = kLanes / (2 * V::kWidth);
  typename V::Pair at[kPairs];

  PairLanes() {
    for (auto& lanes : at) lanes = {V::Set(0.0f), V::Set(0.0f)};
  }
  float Fold() const {
    typename V::Pair folded[kPairs];
    for (int r = 0; r < kPairs; ++r) folded[r] = at[r];
    for (int half = kPairs / 2; half > 0; half /= 2) {
      for (int r = 0; r < half; ++r) {
        folded[r] = {V::Add(folded[r].even, folded[r + half].even),
                     V::Add(folded[r].odd, folded[r + half].odd)};
      }
    }
    return V::FoldHalves(folded[0].even) + V::FoldHalves(folded[0].odd);
  }
};

// SumByLanesV over pairs: step(lanes, i, n) returns the pair of lanes plus what elements i .. i + n
// - 1 add.
template <class V, class Step>
float SumByPairsV(int64_t n, Step&& step) {
  constexpr int kStep = 2 * V::kWidth;
  float total = 0.0f;
  for (int64_t run = 0; run < n; run += kRun) {
    const int64_t end = run + kRun < n ? run + kRun : n;
    PairLanes<V> lanes;
    int64_t i = run;
    for (; i + kLanes <= end; i += kLanes) {
#pragma GCC unroll 32
      for (int r = 0; r < PairLanes<V>::kPairs; ++r) {
        lanes.at[r] = step(lanes.at[r], i + r * kStep, All{});
      }
    }
    for (int r = 0; i < end; ++r, i += kStep) {
      lanes.at[r] = step(lanes.at[r], i, static_cast<int>(end - i < kStep ? end - i : kStep));
    }
    total = total + lanes.Fold();
  }
  return total;
}

// RowDot of kernels/sums.h: a(i, n) and b(i, n) give pairs of snapped elements, zeros beyond n.
template <class V, class A, class B>
float RowDotPairsV(int64_t n, A&& a, B&& b) {
  return SumByPairsV<V>(n, [&](typename V::Pair lanes, int64_t i, auto count) {
    return Both<V>(V::Fma, a(i, count), b(i, count), lanes);
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SIMD_OPS_H_
