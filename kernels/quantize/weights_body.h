// SPDX-License-Identifier: Apache-2.0
//
// The kernels of weights.h over a vector backend V.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_WEIGHTS_BODY_H_
#define LOCKSTEP_KERNELS_QUANTIZE_WEIGHTS_BODY_H_

#include "kernels/quantize/weights.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// How many |w[k] * inverse| are at least kClipBound.
template <class V, class T>
int32_t CountClipped(const T* w, int64_t n, float inverse) {
  int32_t lanes[V::kWidth];
  typename V::I count = V::SetI(0);
  ForEachVector<V>(0, n, [&](int64_t k, auto m) {
    const typename V::F t = V::Abs(V::Mul(V::Load(w + k, m), V::Set(inverse)));
    count = V::AddI(count, V::SelectI(V::Le(V::Set(kClipBound), t), V::SetI(1), V::SetI(0)));
  });
  V::StoreI(lanes, count);
  int32_t total = 0;
  for (const int32_t lane : lanes) total += lane;
  return total;
}

// Quantises one row and returns the largest |w[k] * inverse| as bits.
template <class V, class T>
int32_t QuantizeWeightRow(int8_t* q, const T* w, int64_t n, Quantizer quantizer) {
  const typename V::F inverse = V::Set(quantizer.inverse);
  const typename V::F bound = V::Set(quantizer.bound);
  const typename V::F low = V::Sub(V::Set(0.0f), bound);
  typename V::I largest = V::SetI(0);
  ForEachVector<V>(0, n, [&](int64_t k, auto m) {
    const typename V::F t = V::Mul(V::Load(w + k, m), inverse);
    largest = V::MaxI(largest, V::AsInt(V::Abs(t)));
    V::StoreI(q + k, V::ToInt(V::Min(V::Max(t, low), bound)), m);
  });
  return V::MaxLane(largest);
}

template <class V>
void QuantizeWeightsBody(const QuantizeWeightsArgs& args, Range range) {
  const float factor = LsqFactor(args.cols);
  WithFloats(args.w, [&](const auto* w) {
    for (int64_t o = range.begin; o < range.end; ++o) {
      const auto* row = w + o * args.cols;
      const float sum = RowSumV<V>(
          args.cols, [&](int64_t k, auto n) { return SnapV<V>(V::Abs(V::Load(row + k, n))); });
      Store(&args.step[o], sum * factor);
      const Quantizer quantizer = QuantizerOfStep(args.step[o]);
      const int32_t largest =
          QuantizeWeightRow<V>(args.q + o * args.cols, row, args.cols, quantizer);
      const bool clips = quantizer.bound > 0.0f && largest >= MagnitudeBits(kClipBound);
      args.clipped[o] = clips ? CountClipped<V>(row, args.cols, quantizer.inverse) : 0;
    }
  });
}

template <class V>
void MaskClippedBody(const MaskClippedArgs& args, Range range) {
  WithFloats(args.w, [&](const auto* w) {
    for (int64_t o = range.begin; o < range.end; ++o) {
      if (args.clipped[o] == 0) continue;
      const typename V::F inverse = V::Set(QuantizerOfStep(args.step[o]).inverse);
      ForEachVector<V>(o * args.cols, (o + 1) * args.cols, [&](int64_t i, auto n) {
        const typename V::F t = V::Abs(V::Mul(V::Load(w + i, n), inverse));
        const typename V::F gradient = V::Load(args.gradient + i, n);
        // What stays keeps its bits: it is stored as it was.
        V::StoreRaw(args.gradient + i,
                    V::Select(V::Le(V::Set(kClipBound), t), V::Set(0.0f), gradient), n);
      });
    }
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_WEIGHTS_BODY_H_
