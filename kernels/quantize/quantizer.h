// SPDX-License-Identifier: Apache-2.0
//
// How a float becomes an int8 and back: the step, and the formula on one number and over a vector
// backend. Every kernel that quantises includes this; which values share a step is theirs to say.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_QUANTIZER_H_
#define LOCKSTEP_KERNELS_QUANTIZE_QUANTIZER_H_

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

constexpr float kInt8Max = 127.0f;
constexpr float kClipBound = 127.5f;  // |x| * inverse from here on rounds beyond 127

// Values that share a step are multiplied by `inverse`, clamped to [-bound, bound] and rounded to
// nearest even. A step that is 0, Inf or NaN cannot quantise: inverse and bound are then 0, and
// every value, NaN too, becomes 0; multiplied by the step, it is 0, or NaN if the step is not
// finite.
struct Quantizer {
  float inverse;
  float bound;
};

static inline bool UsableStep(float step) { return step > 0.0f && step < FromBits(0x7f800000u); }

// For values of magnitude at most amax (canonical, not negative, or NaN):
//   step = Canon(amax / 127),  inverse = 127 / amax,
// each one correctly rounded division. A usable step is at least 2^-125, so amax is above 2^-119
// and inverse is normal: it is below 2^126 and, as amax < 2^128, above 2^-122. For |x| <= amax the
// product x * inverse rounds to at most 127: nothing is clipped.
static inline float StepOfAmax(float amax) { return Canon(amax / kInt8Max); }
static inline Quantizer QuantizerOfAmax(float amax) {
  if (!UsableStep(StepOfAmax(amax))) return {0.0f, 0.0f};
  return {kInt8Max / amax, kInt8Max};
}

// For a given step: inverse = 1 / step, one correctly rounded division. A usable step lies in
// [2^-125, 2^128); where it may exceed 2^125 the caller says why inverse is not subnormal.
static inline Quantizer QuantizerOfStep(float step) {
  if (!UsableStep(step)) return {0.0f, 0.0f};
  return {1.0f / step, kInt8Max};
}

// rne(clamp(x * inverse)). The product may be subnormal, or 0 where hardware flushes: it rounds to
// 0 in both. Max gives -bound for NaN.
static inline int32_t QuantizeOne(float x, Quantizer quantizer) {
  const float t = x * quantizer.inverse;
  return ToInt(Min(Max(t, -quantizer.bound), quantizer.bound));
}

template <class V>
static inline typename V::I QuantizeV(typename V::F x, typename V::F inverse, typename V::F bound) {
  const typename V::F low = V::Sub(V::Set(0.0f), bound);
  return V::ToInt(V::Min(V::Max(V::Mul(x, inverse), low), bound));
}

// The same for values that amax bounds, where nothing is above 127 to be clamped: what may be there
// is NaN, which has no usable step, and Max gives 0 for it.
template <class V>
static inline typename V::I QuantizeBoundedV(typename V::F x, typename V::F inverse,
                                             typename V::F bound) {
  return V::ToInt(V::Max(V::Mul(x, inverse), V::Sub(V::Set(0.0f), bound)));
}

// StepOfAmax and QuantizerOfAmax in each lane.
template <class V>
static inline typename V::F StepOfAmaxV(typename V::F amax) {
  return CanonV<V>(V::Div(amax, V::Set(kInt8Max)));
}
template <class V>
static inline void QuantizerOfAmaxV(typename V::F amax, typename V::F* inverse,
                                    typename V::F* bound) {
  const typename V::F zero = V::Set(0.0f);
  const typename V::F step = StepOfAmaxV<V>(amax);
  const typename V::M usable =
      V::And(V::Lt(zero, step), V::Lt(step, V::Set(FromBits(0x7f800000u))));
  *inverse = V::Select(usable, V::Div(V::Set(kInt8Max), amax), zero);
  *bound = V::Select(usable, V::Set(kInt8Max), zero);
}

// The bits of |x|, which order as integers like the magnitudes, NaN above all.
static inline int32_t MagnitudeBits(float x) { return static_cast<int32_t>(Bits(Abs(x))); }
template <class V>
static inline typename V::I MagnitudeBitsV(typename V::F x) {
  return V::AsInt(V::Abs(x));
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_QUANTIZER_H_
