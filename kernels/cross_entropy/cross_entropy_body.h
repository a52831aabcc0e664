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

// The largest of what is not NaN.
template <class V>
float MaximumOf(const float* x, int64_t n) {
  using F = typename V::F;
  constexpr int64_t kStep = 4 * V::kWidth;
  const F low = V::Set(FromBits(0xff800000u));
  F m0 = low, m1 = low, m2 = low, m3 = low;
  int64_t j = 0;
  for (; j + kStep <= n; j += kStep) {
    m0 = V::Max(V::Load(x + j), m0);
    m1 = V::Max(V::Load(x + j + V::kWidth), m1);
    m2 = V::Max(V::Load(x + j + 2 * V::kWidth), m2);
    m3 = V::Max(V::Load(x + j + 3 * V::kWidth), m3);
  }
  float lanes[V::kWidth];
  V::StoreRaw(lanes, V::Max(V::Max(m0, m1), V::Max(m2, m3)));
  float maximum = FromBits(0xff800000u);
  for (const float lane : lanes) maximum = Max(lane, maximum);
  for (; j < n; ++j) maximum = Max(x[j], maximum);
  return maximum;
}

// Snap(Exp(x - m)). x - m is at most 0, -Inf or NaN, so neither of Exp's bounds is needed: the
// first operand of Max yields to NaN, and Exp's formula gives a NaN for one whose low 9 bits are 0,
// as those of the canonical NaN and of every NaN that processors make are.
template <class V>
static inline typename V::F Exponential(typename V::F x, typename V::F m) {
  const typename V::F e = ExpInRangeV<V>(V::Max(V::Set(kLeastExponent), V::Sub(x, m)));
  const typename V::F shift = V::Set(kSnapShift);
  return V::Select(V::Lt(e, V::Set(kSnapBound)), V::Sub(V::Add(e, shift), shift), e);
}

// The row sum of the exponentials; kKeep: they take the place of the logits. The next row is
// fetched meanwhile, while the memory has nothing else to do.
template <class V, bool kKeep>
float SumExponentials(float* x, int64_t n, float maximum) {
  const typename V::F m = V::Set(maximum);
  return RowSumV<V>(n, [&](int64_t j, auto count) {
    __builtin_prefetch(x + n + j);
    typename V::F e = Exponential<V>(V::Load(x + j, count), m);
    if constexpr (!__is_same(decltype(count), All)) {
      float lanes[V::kWidth];
      V::StoreRaw(lanes, e);
      e = V::Load(lanes, count);  // zeros beyond the row
    }
    if constexpr (kKeep) V::StoreRaw(x + j, e, count);
    return e;
  });
}

// x[j] = Canon(x[j] * r), x[j] being 0, in [2^-62, 1], or NaN; r is NaN if one of them is.
template <class V>
void ScaleExponentials(float* x, int64_t n, float r) {
  const typename V::F factor = V::Set(r);
  if (r >= 0x1p-60f && r < FromBits(0x7f800000u)) {
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
  const float m = MaximumOf<V>(x, args.vocab);
  const float s = args.gradient ? SumExponentials<V, true>(x, args.vocab, m)
                                : SumExponentials<V, false>(x, args.vocab, m);
  const float lse = Canon(m + Log(s));
  Store(&args.loss[row], lse - x_t);
  Store(&args.z[row], lse * lse);
  if (!args.gradient) return;
  const float b = Canon((2.0f * args.z_coefficient) * lse);
  const float c = Canon(Fma(b, g, g));
  const float r = Canon(c * (1.0f / s));
  const float e_t = x[t];
  ScaleExponentials<V>(x, args.vocab, r);
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
