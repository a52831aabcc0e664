// SPDX-License-Identifier: Apache-2.0
//
// Products of small matrices in scratch, and their packing: what the vector forms of attention are
// made of. Over a tile backend A, which is a vector backend (kernels/simd/scalar.h) with
//   kRows, kVectors: the tile in registers is kRows x (kVectors * kWidth);
//   Transpose(F (&rows)[kWidth]): a kWidth x kWidth matrix in registers;
//   Dot4(I sum, I a, I b): sum + the four products of a's and b's bytes, a in 0 .. 127, in each
//   lane; AddRounded(int64_t* sum, F x): sum[l] += x[l] rounded to nearest even, |x[l]| <= 2^50.
// Include from *_avx2.cc, *_avx512.cc, *_neon.cc only.
#ifndef LOCKSTEP_KERNELS_ATTENTION_ATTENTION_TILES_H_
#define LOCKSTEP_KERNELS_ATTENTION_ATTENTION_TILES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_inner.h"
#include "kernels/math/exp.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {
namespace {

// A matrix read one element at a time: element (r, k) is data[r * row + k * step].
struct Elements {
  const float* data;
  int64_t row;
  int64_t step;
};

// put(r, n, x) for kR rows from `row` and kC vectors from column n of a · b, each element
// acc = fma(a, b, acc) over ascending k from +0. b has `depth` rows of b_row elements.
template <class A, int kR, int kC, class Put>
void ProductTile(const Elements& a, const float* b, int64_t b_row, int64_t depth, int64_t row,
                 int64_t column, Put&& put) {
  typename A::F acc[kR][kC];
#pragma GCC unroll 32
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) acc[r][c] = A::Set(0.0f);
  }
  const float* at = a.data + row * a.row;
  const float* bt = b + column;
  for (int64_t k = 0; k < depth; ++k, at += a.step, bt += b_row) {
    typename A::F bv[kC];
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) bv[c] = A::Load(bt + c * A::kWidth, All{});
#pragma GCC unroll 32
    for (int r = 0; r < kR; ++r) {
      const typename A::F av = A::Set(at[r * a.row]);
#pragma GCC unroll 8
      for (int c = 0; c < kC; ++c) acc[r][c] = A::Fma(av, bv[c], acc[r][c]);
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) put(row + r, column + c * A::kWidth, acc[r][c]);
  }
}

// Rows [row, rows) in tiles of kR, then of fewer.
template <class A, int kR, int kC, class Put>
void ProductRows(const Elements& a, const float* b, int64_t b_row, int64_t depth, int64_t row,
                 int64_t rows, int64_t column, Put&& put) {
  for (; row + kR <= rows; row += kR) {
    ProductTile<A, kR, kC>(a, b, b_row, depth, row, column, put);
  }
  if constexpr (kR > 1) {
    constexpr int kFewer = kR == 6 ? 4 : kR / 2;
    if (row < rows) ProductRows<A, kFewer, kC>(a, b, b_row, depth, row, rows, column, put);
  }
}

// Rows [row, rows), columns [column, columns) of a · b; columns in whole vectors.
template <class A, int kC = A::kVectors, class Put>
void Product(const Elements& a, const float* b, int64_t b_row, int64_t depth, Range rows,
             Range columns, Put&& put) {
  int64_t column = columns.begin;
  for (; column + kC * A::kWidth <= columns.end; column += kC * A::kWidth) {
    ProductRows<A, A::kRows, kC>(a, b, b_row, depth, rows.begin, rows.end, column, put);
  }
  if constexpr (kC > 1) {
    if (column < columns.end) {
      Product<A, kC / 2>(a, b, b_row, depth, rows, Range{column, columns.end}, put);
    }
  }
}

// The same in integers: a has rows of 64 bytes in 0 .. 127, b has a row of words for each four of
// them, each word the four bytes of one column; groups of four [0, groups) are summed.
template <class A, int kR, int kC, class Put>
void DotTile(const int8_t* a, const int32_t* b, int64_t b_row, int64_t groups, int64_t row,
             int64_t column, Put&& put) {
  typename A::I acc[kR][kC];
#pragma GCC unroll 32
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) acc[r][c] = A::SetI(0);
  }
  const int8_t* at = a + row * kAttentionBlock;
  const int32_t* bt = b + column;
  for (int64_t g = 0; g < groups; ++g, at += 4, bt += b_row) {
    typename A::I bv[kC];
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) bv[c] = A::LoadI(bt + c * A::kWidth, All{});
#pragma GCC unroll 32
    for (int r = 0; r < kR; ++r) {
      int32_t word;
      __builtin_memcpy(&word, at + r * kAttentionBlock, sizeof(word));
      const typename A::I av = A::SetI(word);
#pragma GCC unroll 8
      for (int c = 0; c < kC; ++c) acc[r][c] = A::Dot4(acc[r][c], av, bv[c]);
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) put(row + r, column + c * A::kWidth, acc[r][c]);
  }
}

template <class A, int kR, int kC, class Put>
void DotRows(const int8_t* a, const int32_t* b, int64_t b_row, int64_t groups, int64_t row,
             int64_t rows, int64_t column, Put&& put) {
  for (; row + kR <= rows; row += kR) DotTile<A, kR, kC>(a, b, b_row, groups, row, column, put);
  if constexpr (kR > 1) {
    constexpr int kFewer = kR == 6 ? 4 : kR / 2;
    if (row < rows) DotRows<A, kFewer, kC>(a, b, b_row, groups, row, rows, column, put);
  }
}

template <class A, int kC = A::kVectors, class Put>
void DotProduct(const int8_t* a, const int32_t* b, int64_t b_row, int64_t groups, Range rows,
                Range columns, Put&& put) {
  int64_t column = columns.begin;
  for (; column + kC * A::kWidth <= columns.end; column += kC * A::kWidth) {
    DotRows<A, A::kRows, kC>(a, b, b_row, groups, rows.begin, rows.end, column, put);
  }
  if constexpr (kC > 1) {
    if (column < columns.end) {
      DotProduct<A, kC / 2>(a, b, b_row, groups, rows, Range{column, columns.end}, put);
    }
  }
}

// ---- Packing ----

// Rows [0, rows) of bf16, snapped, `stride` apart, into out [rows, head_dim]. `largest` keeps the
// largest magnitudes of its lanes.
template <class A>
void PackRows(const BFloat16* in, int64_t stride, int64_t rows, int64_t head_dim, float* out,
              typename A::I& largest) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t d = 0; d < head_dim; d += A::kWidth) {
      const typename A::F x = SnapV<A>(A::Load(in + r * stride + d, All{}));
      largest = A::MaxI(largest, A::AsInt(A::Abs(x)));
      A::StoreRaw(out + r * head_dim + d, x, All{});
    }
  }
}

// The same, each multiplied by `scale` before it is snapped.
template <class A>
void PackScaledRows(const BFloat16* in, int64_t stride, int64_t rows, int64_t head_dim, float scale,
                    float* out) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t d = 0; d < head_dim; d += A::kWidth) {
      const typename A::F x = A::Mul(A::Load(in + r * stride + d, All{}), A::Set(scale));
      A::StoreRaw(out + r * head_dim + d, SnapV<A>(x), All{});
    }
  }
}

// Rows [0, rows) of bf16, snapped, transposed into out [head_dim, 64]; zeros beyond the rows.
template <class A>
void PackTransposed(const BFloat16* in, int64_t stride, int64_t rows, int64_t head_dim,
                    float* out) {
  for (int64_t r = 0; r < kAttentionBlock; r += A::kWidth) {
    for (int64_t d = 0; d < head_dim; d += A::kWidth) {
      typename A::F tile[A::kWidth];
#pragma GCC unroll 16
      for (int l = 0; l < A::kWidth; ++l) {
        tile[l] = r + l < rows ? SnapV<A>(A::Load(in + (r + l) * stride + d, All{})) : A::Set(0.0f);
      }
      A::Transpose(tile);
#pragma GCC unroll 16
      for (int l = 0; l < A::kWidth; ++l) {
        A::StoreRaw(out + (d + l) * kAttentionBlock + r, tile[l], All{});
      }
    }
  }
}

// ---- Visible keys ----

// The keys [begin, end) of a block, counted from its first, that a query sees.
struct Visible {
  int begin;
  int end;

  // Of the kWidth keys from `key` on.
  template <class A>
  typename A::M Mask(int key) const {
    alignas(64) static constexpr int32_t kLane[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                      8, 9, 10, 11, 12, 13, 14, 15};
    const typename A::I at = A::AddI(A::LoadI(kLane, All{}), A::SetI(key));
    return A::And(A::LtI(A::SetI(begin - 1), at), A::LtI(at, A::SetI(end)));
  }
};

static inline Visible VisibleOf(const AttentionShape& shape, int64_t i, int64_t block) {
  const int64_t first = block * kAttentionBlock;
  return {static_cast<int>(Least(Most(FirstKey(shape, i) - first, 0), kAttentionBlock)),
          static_cast<int>(Least(i + 1 - first, kAttentionBlock))};
}

// Whether some query of the block does not see some key of the other.
static inline bool HasInvisible(const AttentionShape& shape, int64_t query_block, int64_t block) {
  const int64_t last = query_block * kAttentionBlock + BlockSize(shape, query_block) - 1;
  return block == query_block || FirstKey(shape, last) > block * kAttentionBlock;
}

// ---- Elementwise ----

// Snap(Exp(x)) for x <= 0 or NaN. Below -80 both are +0, as at -80.
template <class A>
typename A::F Weight(typename A::F x) {
  return SnapV<A>(ExpInRangeV<A>(A::Max(A::Set(-80.0f), x)));
}

// 32 lanes of each row in memory.
template <class A>
float FoldLanes(const float* lanes) {
  RowLanes<A> sum;
  for (int r = 0; r < RowLanes<A>::kRegisters; ++r) {
    sum.at[r] = A::Load(lanes + r * A::kWidth, All{});
  }
  return sum.Fold();
}

static inline void SetZero(float* x, int64_t count) {
  __builtin_memset(x, 0, static_cast<size_t>(count) * sizeof(float));
}

}  // namespace
}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ATTENTION_ATTENTION_TILES_H_
