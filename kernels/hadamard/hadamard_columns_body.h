// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard kernels down columns over a vector backend V; see hadamard_body.h for what V
// has and for the transform itself.
#ifndef LOCKSTEP_KERNELS_HADAMARD_HADAMARD_COLUMNS_BODY_H_
#define LOCKSTEP_KERNELS_HADAMARD_HADAMARD_COLUMNS_BODY_H_

#include "kernels/hadamard/hadamard_body.h"

namespace lockstep::kernels {

// Columns that are taken through a block of rows together: a cache line of bf16.
constexpr int kStripe = 32;

// fn(first column, strands, lanes of each strand) until `columns` columns from `first` on are done:
// stripes of whole vectors, then what is left, one vector or a part of one at a time.
template <class V, class Fn>
LOCKSTEP_ALWAYS_INLINE inline void ForEachStripe(int64_t first, int64_t columns, Fn&& fn) {
  constexpr int kVectors = kStripe / V::kWidth;
  int64_t c = 0;
  for (; c + kStripe <= columns; c += kStripe) fn(first + c, kVectors, All{});
  for (; c < columns; c += V::kWidth) {
    fn(first + c, 1, static_cast<int>(columns - c < V::kWidth ? columns - c : V::kWidth));
  }
}

// Transforms all rows of a stripe: value(r, c) gives the vector of snapped elements of row r from
// column c on, emit(s, r, step, c, y) takes results of strand s, rows r, r + step, ...
template <class V, class Value, class Emit>
LOCKSTEP_ALWAYS_INLINE inline void TransformStripe(int64_t rows, int64_t block, float* buffer,
                                                   int64_t column, int strands, Value&& value,
                                                   Emit&& emit) {
  const int log = Log2(block);
  for (int64_t b = 0; b < rows; b += block) {
    TransformVectors<V>(
        log, strands, buffer,
        [&](int s, int i) LOCKSTEP_ALWAYS_INLINE { return value(b + i, column + s * V::kWidth); },
        [&](int s, int64_t i, int64_t step, const auto& y)
            LOCKSTEP_ALWAYS_INLINE { emit(s, b + i, step, column + s * V::kWidth, y); });
  }
}

template <class V>
void HadamardColumnsBody(const HadamardColumnsArgs& args, Range range) {
  ScratchFrame scratch;
  float* buffer = scratch.Get<float>(args.block * kStripe);
  const int64_t begin = range.begin * kColumnPanel;
  const int64_t end = range.end * kColumnPanel < args.cols ? range.end * kColumnPanel : args.cols;
  WithFloats(args.x, [&](const auto* x) {
    ForEachStripe<V>(begin, end - begin, [&](int64_t column, int strands, auto n) {
      TransformStripe<V>(
          args.rows, args.block, buffer, column, strands,
          [&](int64_t r, int64_t c)
              LOCKSTEP_ALWAYS_INLINE { return SnapV<V>(V::Load(x + r * args.cols + c, n)); },
          [&](int, int64_t r, int64_t step, int64_t c, const auto& y) LOCKSTEP_ALWAYS_INLINE {
            float* at = args.out + r * args.cols + c;
            ForEachOf<V>(y, [&](int j, typename V::F yj) LOCKSTEP_ALWAYS_INLINE {
              StoreV<V>(at + j * step * args.cols, yj, n);
            });
          });
    });
  });
}

// One panel of columns: value(r, c, n) gives n snapped elements of row r from column c on.
template <class V, class Value>
void HadamardQuantizePanel(const HadamardQuantizeColumnsArgs& args, int64_t first, int64_t columns,
                           float* buffer, Value&& value) {
  using F = typename V::F;
  using I = typename V::I;
  PanelQuantizer panel;
  ClearAmax(&panel);
  ForEachStripe<V>(first, columns, [&](int64_t column, int strands, auto n) {
    int32_t* amax = panel.amax + (column - first);
    TransformStripe<V>(
        args.rows, args.block, buffer, column, strands,
        [&](int64_t r, int64_t c) LOCKSTEP_ALWAYS_INLINE { return value(r, c, n); },
        [&](int s, int64_t, int64_t, int64_t, const auto& y) LOCKSTEP_ALWAYS_INLINE {
          int32_t* at = amax + s * V::kWidth;
          const I largest = V::MaxI(V::LoadI(at, n), AmaxSweep<V>(y));
          V::StoreI(at, largest, n);
        });
  });
  FinishPanel<V>(&panel, args.scale + first, args.gain, columns);
  ForEachStripe<V>(first, columns, [&](int64_t column, int strands, auto n) {
    TransformStripe<V>(
        args.rows, args.block, buffer, column, strands,
        [&](int64_t r, int64_t c) LOCKSTEP_ALWAYS_INLINE { return value(r, c, n); },
        [&](int, int64_t r, int64_t step, int64_t c, const auto& y) LOCKSTEP_ALWAYS_INLINE {
          const F inverse = V::Load(panel.inverse + (c - first), n);
          const F bound = V::Load(panel.bound + (c - first), n);
          int8_t* at = args.q + r * args.cols + c;
          ForEachOf<V>(y, [&](int j, F yj) LOCKSTEP_ALWAYS_INLINE {
            V::StoreI(at + j * step * args.cols, QuantizeV<V>(yj, inverse, bound), n);
          });
        });
  });
}

template <class V>
void HadamardQuantizeColumnsBody(const HadamardQuantizeColumnsArgs& args, Range range) {
  using F = typename V::F;
  ScratchFrame scratch;
  float* buffer = scratch.Get<float>(args.block * kStripe);
  for (int64_t p = range.begin; p < range.end; ++p) {
    const int64_t first = p * kColumnPanel;
    const int64_t left = args.cols - first;
    const int64_t columns = left < kColumnPanel ? left : kColumnPanel;
    const auto panel = [&](auto&& value) {
      HadamardQuantizePanel<V>(args, first, columns, buffer, value);
    };
    if (args.x.kind != ElementKind::kInt8) {
      WithFloats(args.x, [&](const auto* x) {
        panel([&args, x](int64_t r, int64_t c, auto n)
                  LOCKSTEP_ALWAYS_INLINE { return SnapV<V>(V::Load(x + r * args.cols + c, n)); });
      });
      continue;
    }
    const auto* x = static_cast<const int8_t*>(args.x.data);
    if (args.row_scale == nullptr) {
      // Integers: Snap leaves them alone.
      panel([&args, x](int64_t r, int64_t c, auto n)
                LOCKSTEP_ALWAYS_INLINE { return V::ToFloat(V::LoadI(x + r * args.cols + c, n)); });
    } else {
      // The product is 0 or, since neither factor is below 2^-125 and one is an integer, not tiny:
      // of its Canon only the signs of 0 and NaN are left, which Snap and the integers settle.
      panel([&args, x](int64_t r, int64_t c, auto n) LOCKSTEP_ALWAYS_INLINE {
        const F value = V::ToFloat(V::LoadI(x + r * args.cols + c, n));
        return SnapV<V>(V::Mul(value, V::Set(args.row_scale[r])));
      });
    }
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_HADAMARD_HADAMARD_COLUMNS_BODY_H_
