// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy over a vector backend V: the largest logit, then the exponentials and their sum,
// left in place of the logits, then their product with the row's factor.
#ifndef LOCKSTEP_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_BODY_H_
#define LOCKSTEP_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_BODY_H_

#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/math/exp.h"
#include "kernels/math/log.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// exp of less is below 2^-86 and snaps to 0, as does exp of this.
constexpr float kLeastExponent = -60.0f;

struct RowMaximum {
  float m;      // of what is not NaN
  bool finite;  // no NaN in the row, and m is finite
};

template <class V>
RowMaximum MaximumOf(const float* x, int64_t n) {
  using F = typename V::F;
  constexpr int64_t kStep = 4 * V::kWidth;
  const F low = V::Set(FromBits(0xff800000u));
  F m0 = low, m1 = low, m2 = low, m3 = low;
  typename V::M nan = V::IsNan(low);
  int64_t j = 0;
  for (; j + kStep <= n; j += kStep) {
    const F x0 = V::Load(x + j);
    const F x1 = V::Load(x + j + V::kWidth);
    const F x2 = V::Load(x + j + 2 * V::kWidth);
    const F x3 = V::Load(x + j + 3 * V::kWidth);
    m0 = V::Max(x0, m0);
    m1 = V::Max(x1, m1);
    m2 = V::Max(x2, m2);
    m3 = V::Max(x3, m3);
    nan = V::Or(nan, V::Or(V::Or(V::IsNan(x0), V::IsNan(x1)), V::Or(V::IsNan(x2), V::IsNan(x3))));
  }
  float lanes[V::kWidth];
  V::StoreRaw(lanes, V::Max(V::Max(m0, m1), V::Max(m2, m3)));
  RowMaximum maximum = {.m = FromBits(0xff800000u), .finite = !V::Any(nan)};
  for (const float lane : lanes) maximum.m = Max(lane, maximum.m);
  for (; j < n; ++j) {
    maximum.m = Max(x[j], maximum.m);
    maximum.finite = maximum.finite && x[j] == x[j];
  }
  maximum.finite = maximum.finite && Abs(maximum.m) < FromBits(0x7f800000u);
  return maximum;
}

// Snap(Exp(x - m)). Where all is finite, x - m is at most 0, so neither of Exp's bounds is needed.
template <class V, bool kFinite>
static inline typename V::F Exponential(typename V::F x, typename V::F m) {
  const typename V::F d = V::Sub(x, m);
  if constexpr (!kFinite) return SnapV<V>(ExpV<V>(d));
  const typename V::F e = ExpInRangeV<V>(V::Max(d, V::Set(kLeastExponent)));
  const typename V::F shift = V::Set(kSnapShift);
  return V::Select(V::Lt(e, V::Set(kSnapBound)), V::Sub(V::Add(e, shift), shift), e);
}

// The row sum of the exponentials; kKeep: they take the place of the logits. The next row is
// fetched meanwhile, while the memory has nothing else to do.
template <class V, bool kFinite, bool kKeep>
float SumExponentials(float* x, int64_t n, float maximum) {
  const typename V::F m = V::Set(maximum);
  return RowSumV<V>(n, [&](int64_t j, auto count) {
    __builtin_prefetch(x + n + j);
    typename V::F e = Exponential<V, kFinite>(V::Load(x + j, count), m);
    if constexpr (!__is_same(decltype(count), All)) {
      float lanes[V::kWidth];
      V::StoreRaw(lanes, e);
      e = V::Load(lanes, count);  // zeros beyond the row
    }
    if constexpr (kKeep) V::StoreRaw(x + j, e, count);
    return e;
  });
}

// x[j] = Canon(x[j] * r), x[j] being 0 or in [2^-62, 1], or anything if not all is finite.
template <class V>
void Scale(float* x, int64_t n, float r, bool finite) {
  const typename V::F factor = V::Set(r);
  if (finite && r >= 0x1p-60f && r < FromBits(0x7f800000u)) {
    ForEachVector<V>(0, n, [&](int64_t j, auto count) {  // canonical as it is
      V::StoreRaw(x + j, V::Mul(V::Load(x + j, count), factor), count);
    });
  } else {
    ForEachVector<V>(0, n, [&](int64_t j, auto count) {
      StoreV<V>(x + j, V::Mul(V::Load(x + j, count), factor), count);
    });
  }
}

template <class V>
void CrossEntropyRow(const CrossEntropyArgs& args, int64_t row) {
  float* x = args.logits + row * args.vocab;
  const int32_t t = args.targets[row];
  const float g = args.scale;
  const float x_t = x[t];
  const RowMaximum maximum = MaximumOf<V>(x, args.vocab);
  float s;
  if (maximum.finite) {
    s = args.gradient ? SumExponentials<V, true, true>(x, args.vocab, maximum.m)
                      : SumExponentials<V, true, false>(x, args.vocab, maximum.m);
  } else {
    s = args.gradient ? SumExponentials<V, false, true>(x, args.vocab, maximum.m)
                      : SumExponentials<V, false, false>(x, args.vocab, maximum.m);
  }
  const float lse = Canon(maximum.m + Log(s));
  Store(&args.loss[row], lse - x_t);
  Store(&args.z[row], lse * lse);
  if (!args.gradient) return;
  const float b = Canon((2.0f * args.z_coefficient) * lse);
  const float c = Canon(Fma(b, g, g));
  const float r = Canon(c * (1.0f / s));
  const float e_t = x[t];
  Scale<V>(x, args.vocab, r, maximum.finite);
  Store(&x[t], Fma(e_t, r, -g));
}

template <class V>
void CrossEntropyBody(const CrossEntropyArgs& args, Range range) {
  for (int64_t row = range.begin; row < range.end; ++row) {
    if (args.targets[row] != kIgnoredTarget) {
      CrossEntropyRow<V>(args, row);
      continue;
    }
    args.loss[row] = 0.0f;
    args.z[row] = 0.0f;
    if (!args.gradient) continue;
    float* x = args.logits + row * args.vocab;
    ForEachVector<V>(0, args.vocab,
                     [&](int64_t j, auto count) { V::StoreRaw(x + j, V::Set(0.0f), count); });
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_CROSS_ENTROPY_CROSS_ENTROPY_BODY_H_
