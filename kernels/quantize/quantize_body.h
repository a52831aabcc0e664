// SPDX-License-Identifier: Apache-2.0
//
// The kernels of quantize.h over a vector backend V, and the parts of them that fused kernels use.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_BODY_H_
#define LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_BODY_H_

#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"
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

// The same for x that amax bounds.
template <class V, class T>
void QuantizeBoundedSpan(int8_t* q, const T* x, int64_t n, float amax) {
  const Quantizer quantizer = QuantizerOfAmax(amax);
  if (quantizer.bound == 0.0f) {
    ForEachVector<V>(0, n, [&](int64_t i, auto m) { V::StoreI(q + i, V::SetI(0), m); });
    return;
  }
  const typename V::F inverse = V::Set(quantizer.inverse);
  ForEachVector<V>(0, n, [&](int64_t i, auto m) {  // at most 127 in magnitude, none NaN
    V::StoreI(q + i, V::ToInt(V::Mul(V::Load(x + i, m), inverse)), m);
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
      QuantizeBoundedSpan<V>(args.q + row, x + row, args.cols, amax);
    }
  });
}

// What quantises each column of a range of `count` columns, made from the columns' amax. The arrays
// are scratch, of whole vectors.
struct ColumnQuantizers {
  int32_t* amax;  // bits
  float* inverse;
  float* bound;
  int64_t count;
};

static inline ColumnQuantizers NewColumnQuantizers(ScratchFrame* scratch, int64_t count) {
  const int64_t padded = (count + kColumnPanel - 1) / kColumnPanel * kColumnPanel;
  const ColumnQuantizers columns = {.amax = scratch->Get<int32_t>(padded),
                                    .inverse = scratch->Get<float>(padded),
                                    .bound = scratch->Get<float>(padded),
                                    .count = count};
  for (int64_t c = 0; c < padded; ++c) columns.amax[c] = 0;
  return columns;
}

// scale[c] and the quantisers, once amax stands.
template <class V>
void FinishColumns(const ColumnQuantizers& columns, float* scale, float gain) {
  ForEachVector<V>(0, columns.count, [&](int64_t c, auto n) {
    const typename V::F amax = V::AsFloat(V::LoadI(columns.amax + c));
    typename V::F inverse;
    typename V::F bound;
    QuantizerOfAmaxV<V>(amax, &inverse, &bound);
    V::StoreRaw(columns.inverse + c, inverse);
    V::StoreRaw(columns.bound + c, bound);
    StoreV<V>(scale + c, V::Mul(StepOfAmaxV<V>(amax), V::Set(gain)), n);
  });
}

template <class V>
void QuantizeColumnsBody(const QuantizeColumnsArgs& args, Range range) {
  constexpr int64_t kRows = 8;  // streams through memory at once
  const int64_t first = range.begin * kColumnPanel;
  const int64_t end = range.end * kColumnPanel < args.cols ? range.end * kColumnPanel : args.cols;
  ScratchFrame scratch;
  const ColumnQuantizers columns = NewColumnQuantizers(&scratch, end - first);
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t begin = 0; begin < args.rows; begin += kRows) {
      const int64_t rows = args.rows - begin < kRows ? args.rows - begin : kRows;
      const auto* at = x + begin * args.cols + first;
      ForEachVector<V>(0, columns.count, [&](int64_t c, auto n) {
        typename V::I amax = V::LoadI(columns.amax + c);
        for (int64_t r = 0; r < rows; ++r) {
          amax = V::MaxI(amax, MagnitudeBitsV<V>(V::Load(at + r * args.cols + c, n)));
        }
        V::StoreI(columns.amax + c, amax);
      });
    }
    FinishColumns<V>(columns, args.scale + first, args.gain);
    for (int64_t r = 0; r < args.rows; ++r) {
      const int64_t row = r * args.cols + first;
      ForEachVector<V>(0, columns.count, [&](int64_t c, auto n) {
        V::StoreI(args.q + row + c,
                  QuantizeBoundedV<V>(V::Load(x + row + c, n), V::Load(columns.inverse + c),
                                      V::Load(columns.bound + c)),
                  n);
      });
    }
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_BODY_H_
