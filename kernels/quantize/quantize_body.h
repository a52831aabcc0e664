// SPDX-License-Identifier: Apache-2.0
//
// The kernels of quantize.h over a vector backend V, and the parts of them that fused kernels use.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_BODY_H_
#define LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_BODY_H_

#include "kernels/quantize/quantize.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// The largest magnitude of x[0..n-1]. Four maxima at once: one would wait for its own result.
template <class V, class T>
float AmaxV(const T* x, int64_t n) {
  using I = typename V::I;
  constexpr int64_t kStep = 4 * V::kWidth;
  I m0 = V::SetI(0), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    m0 = V::MaxI(m0, MagnitudeBitsV<V>(V::Load(x + i)));
    m1 = V::MaxI(m1, MagnitudeBitsV<V>(V::Load(x + i + V::kWidth)));
    m2 = V::MaxI(m2, MagnitudeBitsV<V>(V::Load(x + i + 2 * V::kWidth)));
    m3 = V::MaxI(m3, MagnitudeBitsV<V>(V::Load(x + i + 3 * V::kWidth)));
  }
  ForEachVector<V>(i, n, [&](int64_t j, auto count) {
    m0 = V::MaxI(m0, MagnitudeBitsV<V>(V::Load(x + j, count)));
  });
  const I largest = V::MaxI(V::MaxI(m0, m1), V::MaxI(m2, m3));
  return FromBits(static_cast<uint32_t>(V::MaxLane(largest)));
}

// q[i] = QuantizeOne(x[i], quantizer) for i in [begin, end).
template <class V, class T>
void QuantizeSpan(int8_t* q, const T* x, int64_t begin, int64_t end, Quantizer quantizer) {
  const typename V::F inverse = V::Set(quantizer.inverse);
  const typename V::F bound = V::Set(quantizer.bound);
  ForEachVector<V>(begin, end, [&](int64_t i, auto n) {
    V::StoreI(q + i, QuantizeV<V>(V::Load(x + i, n), inverse, bound), n);
  });
}

template <class V>
void AmaxBlocksBody(const AmaxBlocksArgs& args, Range range) {
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t b = range.begin; b < range.end; ++b) {
      const int64_t left = args.count - b * kAmaxBlock;
      args.amax[b] = AmaxV<V>(x + b * kAmaxBlock, left < kAmaxBlock ? left : kAmaxBlock);
    }
  });
}

template <class V>
void QuantizeBody(const QuantizeArgs& args, Range range) {
  WithFloats(args.x, [&](const auto* x) {
    QuantizeSpan<V>(args.q, x, range.begin, range.end, QuantizerOfAmax(args.amax));
  });
}

template <class V>
void QuantizeRowsBody(const QuantizeRowsArgs& args, Range range) {
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      const int64_t row = r * args.cols;
      const float amax = AmaxV<V>(x + row, args.cols);
      Store(&args.scale[r], StepOfAmax(amax) * args.gain);
      QuantizeSpan<V>(args.q + row, x + row, 0, args.cols, QuantizerOfAmax(amax));
    }
  });
}

// What quantises each column of a panel, made from the columns' amax.
struct PanelQuantizer {
  int32_t amax[kColumnPanel];  // bits
  float inverse[kColumnPanel];
  float bound[kColumnPanel];
};

static inline void ClearAmax(PanelQuantizer* panel) {
  for (int32_t& amax : panel->amax) amax = 0;
}

// scale[c] and the quantisers of the panel's n columns.
template <class V>
void FinishPanel(PanelQuantizer* panel, float* scale, float gain, int64_t columns) {
  for (int64_t c = 0; c < kColumnPanel; c += V::kWidth) {
    const typename V::F amax = V::AsFloat(V::LoadI(panel->amax + c));
    typename V::F inverse;
    typename V::F bound;
    QuantizerOfAmaxV<V>(amax, &inverse, &bound);
    V::StoreRaw(panel->inverse + c, inverse);
    V::StoreRaw(panel->bound + c, bound);
  }
  ForEachVector<V>(0, columns, [&](int64_t c, auto n) {
    const typename V::F amax = V::AsFloat(V::LoadI(panel->amax + c));
    StoreV<V>(scale + c, V::Mul(StepOfAmaxV<V>(amax), V::Set(gain)), n);
  });
}

template <class V, class T>
void QuantizePanel(const QuantizeColumnsArgs& args, const T* x, int64_t first, int64_t columns) {
  constexpr int64_t kRows = 64;  // of the panel fit the first cache and are swept column by column
  PanelQuantizer panel;
  ClearAmax(&panel);
  for (int64_t begin = 0; begin < args.rows; begin += kRows) {
    const int64_t end = begin + kRows < args.rows ? begin + kRows : args.rows;
    ForEachVector<V>(0, columns, [&](int64_t c, auto n) {
      typename V::I amax = V::LoadI(panel.amax + c);
      for (int64_t r = begin; r < end; ++r) {
        amax = V::MaxI(amax, MagnitudeBitsV<V>(V::Load(x + r * args.cols + first + c, n)));
      }
      V::StoreI(panel.amax + c, amax);
    });
  }
  FinishPanel<V>(&panel, args.scale + first, args.gain, columns);
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t at = r * args.cols + first;
    ForEachVector<V>(0, columns, [&](int64_t c, auto n) {
      const typename V::I q = QuantizeV<V>(V::Load(x + at + c, n), V::Load(panel.inverse + c),
                                           V::Load(panel.bound + c));
      V::StoreI(args.q + at + c, q, n);
    });
  }
}

template <class V>
void QuantizeColumnsBody(const QuantizeColumnsArgs& args, Range range) {
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t p = range.begin; p < range.end; ++p) {
      const int64_t first = p * kColumnPanel;
      const int64_t left = args.cols - first;
      QuantizePanel<V>(args, x, first, left < kColumnPanel ? left : kColumnPanel);
    }
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_BODY_H_
