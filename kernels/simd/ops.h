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
template <class V, class N>
void StoreV(BFloat16* p, typename V::F x, N n) {
  const typename V::I bits = V::AsInt(CanonV<V>(x));
  const typename V::I odd = V::AndI(V::template ShiftRight<16>(bits), V::SetI(1));
  const typename V::I rounded = V::AddI(bits, V::AddI(odd, V::SetI(0x7fff)));
  V::StoreLow16(&p->bits, V::template ShiftRight<16>(rounded), n);
}

// body(i, n) for i = begin, begin + kWidth, ...: n is All{} while a whole vector is left, then the
// count that is.
template <class V, class Body>
void ForEachVector(int64_t begin, int64_t end, Body&& body) {
  int64_t i = begin;
  for (; i + V::kWidth <= end; i += V::kWidth) body(i, All{});
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

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SIMD_OPS_H_
