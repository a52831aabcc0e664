// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard kernels down columns over a vector backend V; see hadamard_body.h for what V
// has and for the transform itself.
#ifndef LOCKSTEP_KERNELS_HADAMARD_HADAMARD_COLUMNS_BODY_H_
#define LOCKSTEP_KERNELS_HADAMARD_HADAMARD_COLUMNS_BODY_H_

#include "kernels/hadamard/hadamard_body.h"

namespace lockstep::kernels {

// Columns that are taken through a block of rows together: few enough that a block of them, in f32,
// is half of a first-level cache.
constexpr int kStripe = 16;

// A range of columns and what is shared by all passes over it. `cols` is the whole matrix's.
template <class V>
struct ColumnRange {
  // Stripes whose lines are asked for together, row by row, while those before are worked on: the
  // rows of a block lie in as many pages, which no hardware prefetcher follows.
  static constexpr int kGroup = 1 << V::kLog;

  int64_t first;
  int64_t end;
  int64_t rows;
  int64_t cols;
  int64_t block;
  float* buffer;  // [block * kStripe]

  // Transforms the range, a block of rows at a time: values(r, c, n) gives a function whose calls
  // give n snapped elements of rows r, r + 1, ... from column c on, emit(r, step, c, n, y) takes n
  // results from column c on of rows r, r + step, ... x: the matrix.
  template <class T, class Values, class Emit>
  LOCKSTEP_ALWAYS_INLINE inline void Transform(const T* x, Values&& values, Emit&& emit) const {
    for (int64_t b = 0; b < rows; b += block) {
      int64_t c = first;
      for (; c + kStripe <= end; c += kStripe) {
        Stripe(x, b, c, kStripe / V::kWidth, All{}, values, emit);
      }
      for (; c < end; c += V::kWidth) {
        const int n = static_cast<int>(end - c < V::kWidth ? end - c : V::kWidth);
        Stripe(x, b, c, 1, n, values, emit);
      }
    }
  }

  template <class T, class N, class Values, class Emit>
  LOCKSTEP_ALWAYS_INLINE inline void Stripe(const T* x, int64_t b, int64_t column, int strands, N n,
                                            Values&& values, Emit&& emit) const {
    const int log = Log2(block);
    const auto put = [&](int s, int64_t i, int64_t step, const auto& y) LOCKSTEP_ALWAYS_INLINE {
      emit(b + i, step, column + s * V::kWidth, n, y);
    };
    if (log < V::kLog) {
      for (int s = 0; s < strands; ++s) {
        Small(values(b, column + s * V::kWidth, n),
              [&](int64_t i, const auto& y) LOCKSTEP_ALWAYS_INLINE { put(s, i, 0, y); });
      }
      return;
    }
    const int64_t at = (column - first) / kStripe % kGroup;
    const int64_t group = column - at * kStripe;
    const bool same_rows = group + kGroup * kStripe < end;
    const T* next =
        x + (same_rows ? b * cols + group + kGroup * kStripe : (b + block) * cols + first);
    TransformBySweeps<V>(
        log, strands, buffer,
        [&](int s, int i) LOCKSTEP_ALWAYS_INLINE {
          if (s == 0) Request(next + (at * block + i) / kGroup * cols);
          return values(b + i, column + s * V::kWidth, n);
        },
        put);
  }

  // Asks for the group's part of one row. The address need not be inside the matrix.
  template <class T>
  LOCKSTEP_ALWAYS_INLINE inline static void Request(const T* row) {
    constexpr int kLine = 64 / sizeof(T);
    for (int i = 0; i < kGroup * kStripe; i += kLine) __builtin_prefetch(row + i, 0, 2);
  }

  // A block of fewer rows than a sweep takes.
  template <class Next, class Put>
  LOCKSTEP_ALWAYS_INLINE inline void Small(Next&& next, Put&& put) const {
    for (int64_t i = 0; i < block; ++i) V::StoreRaw(buffer + i * V::kWidth, next());
    for (int64_t h = 1; h < block; h *= 2) {
      for (int64_t i = 0; i < block; ++i) {
        if ((i & h) != 0) continue;
        float* at = buffer + i * V::kWidth;
        const typename V::F a = V::Load(at);
        const typename V::F b = V::Load(at + h * V::kWidth);
        V::StoreRaw(at, V::Add(a, b));
        V::StoreRaw(at + h * V::kWidth, V::Sub(a, b));
      }
    }
    for (int64_t i = 0; i < block; ++i) {
      const typename V::F y[1] = {V::Load(buffer + i * V::kWidth)};
      put(i, y);
    }
  }
};

template <class V>
ColumnRange<V> ColumnRangeOf(Range panels, int64_t rows, int64_t cols, int64_t block,
                             ScratchFrame* scratch) {
  const int64_t end = panels.end * kColumnPanel;
  return {.first = panels.begin * kColumnPanel,
          .end = end < cols ? end : cols,
          .rows = rows,
          .cols = cols,
          .block = block,
          .buffer = scratch->Get<float>(block * kStripe)};
}

// Rows of floats, snapped, from p on.
template <class V, class T, class N>
struct SnappedRows {
  const T* p;
  int64_t cols;
  N n;
  LOCKSTEP_ALWAYS_INLINE inline typename V::F operator()() {
    const typename V::F x = SnapV<V>(V::Load(p, n));
    p += cols;
    return x;
  }
};

template <class V, class T, class N>
LOCKSTEP_ALWAYS_INLINE inline SnappedRows<V, T, N> RowsOf(const T* p, int64_t cols, N n) {
  return {p, cols, n};
}

// Rows of integers: Snap leaves them alone.
template <class V, class N>
struct IntegerRows {
  const int8_t* p;
  int64_t cols;
  N n;
  LOCKSTEP_ALWAYS_INLINE inline typename V::F operator()() {
    const typename V::F x = V::ToFloat(V::LoadI(p, n));
    p += cols;
    return x;
  }
};

// Rows of integers times the row's scale. The product is 0 or, since neither factor is below 2^-125
// and one is an integer, not tiny: of its Canon only the signs of 0 and NaN are left, which Snap
// and the integers settle.
template <class V, class N>
struct ScaledRows {
  const int8_t* p;
  int64_t cols;
  N n;
  const float* scale;
  LOCKSTEP_ALWAYS_INLINE inline typename V::F operator()() {
    const typename V::F x = SnapV<V>(V::Mul(V::ToFloat(V::LoadI(p, n)), V::Set(*scale)));
    p += cols;
    ++scale;
    return x;
  }
};

template <class V>
void HadamardColumnsBody(const HadamardColumnsArgs& args, Range range) {
  ScratchFrame scratch;
  const auto columns = ColumnRangeOf<V>(range, args.rows, args.cols, args.block, &scratch);
  WithFloats(args.x, [&](const auto* x) {
    columns.Transform(
        x,
        [&](int64_t r, int64_t c, auto n)
            LOCKSTEP_ALWAYS_INLINE { return RowsOf<V>(x + r * args.cols + c, args.cols, n); },
        [&](int64_t r, int64_t step, int64_t c, auto n, const auto& y) LOCKSTEP_ALWAYS_INLINE {
          float* at = args.out + r * args.cols + c;
          ForEachOf<V>(y, [&](int, typename V::F yj) LOCKSTEP_ALWAYS_INLINE {
            StoreV<V>(at, yj, n);
            at += step * args.cols;
          });
        });
  });
}

// The two passes: values as in ColumnRange.
template <class V, class T, class Values>
void HadamardQuantize(const HadamardQuantizeColumnsArgs& args, const ColumnRange<V>& range,
                      const T* x, Values&& values) {
  using F = typename V::F;
  ScratchFrame scratch;
  const ColumnQuantizers columns = NewColumnQuantizers(&scratch, range.end - range.first);
  range.Transform(x, values,
                  [&](int64_t, int64_t, int64_t c, auto, const auto& y) LOCKSTEP_ALWAYS_INLINE {
                    int32_t* amax = columns.amax + (c - range.first);
                    V::StoreI(amax, V::MaxI(V::LoadI(amax), AmaxSweep<V>(y)));
                  });
  FinishColumns<V>(columns, args.scale + range.first, args.gain);
  range.Transform(x, values,
                  [&](int64_t r, int64_t step, int64_t c, auto n, const auto& y)
                      LOCKSTEP_ALWAYS_INLINE {
                        const F inverse = V::Load(columns.inverse + (c - range.first));
                        const F bound = V::Load(columns.bound + (c - range.first));
                        int8_t* at = args.q + r * args.cols + c;
                        ForEachOf<V>(y, [&](int, F yj) LOCKSTEP_ALWAYS_INLINE {
                          V::StoreI(at, QuantizeBoundedV<V>(yj, inverse, bound), n);
                          at += step * args.cols;
                        });
                      });
}

template <class V>
void HadamardQuantizeColumnsBody(const HadamardQuantizeColumnsArgs& args, Range range) {
  ScratchFrame scratch;
  const int64_t cols = args.cols;
  const auto columns = ColumnRangeOf<V>(range, args.rows, cols, args.block, &scratch);
  if (args.x.kind != ElementKind::kInt8) {
    WithFloats(args.x, [&](const auto* x) {
      HadamardQuantize<V>(args, columns, x,
                          [x, cols](int64_t r, int64_t c, auto n) LOCKSTEP_ALWAYS_INLINE {
                            return RowsOf<V>(x + r * cols + c, cols, n);
                          });
    });
    return;
  }
  const auto* x = static_cast<const int8_t*>(args.x.data);
  const float* scale = args.row_scale;
  if (scale == nullptr) {
    HadamardQuantize<V>(args, columns, x,
                        [x, cols](int64_t r, int64_t c, auto n) LOCKSTEP_ALWAYS_INLINE {
                          return IntegerRows<V, decltype(n)>{x + r * cols + c, cols, n};
                        });
  } else {
    HadamardQuantize<V>(args, columns, x,
                        [x, cols, scale](int64_t r, int64_t c, auto n) LOCKSTEP_ALWAYS_INLINE {
                          return ScaledRows<V, decltype(n)>{x + r * cols + c, cols, n, scale + r};
                        });
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_HADAMARD_HADAMARD_COLUMNS_BODY_H_
