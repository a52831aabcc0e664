// SPDX-License-Identifier: Apache-2.0
//
// Packing and multiplying over a machine K, one for each instruction set, which supplies
//   V                            the vector backend;
//   kTile                        its GemmI8Tile;
//   kLines, kGroups              the block of lines and groups that one step of packing turns
//   round; Transpose<kIsA, lines>(source, ld, to, pitch)
//                                packs `lines` <= kLines lines of kGroups groups, k contiguous;
//                                group g goes to `to + g * pitch`;
//   Interleave<kIsA>(source, ld, to)
//                                packs one group of kLines lines, lines contiguous;
//   Correct(panel, groups, corrections)
//                                fills corrections[columns] of a panel of B;
//   Multiply(rows, a, b, groups, corrections, out, ld)
//                                writes at least `rows` rows and at most a whole tile of the
//                                product.
// Both packing steps may write whole vectors, beyond the lines that they were asked for.
#ifndef LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_BODY_H_
#define LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_BODY_H_

#include <cstddef>
#include <cstdint>

#include "kernels/gemm_i8/dequantize.h"
#include "kernels/gemm_i8/gemm_i8_inner.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

static inline int64_t Smaller(int64_t x, int64_t y) { return x < y ? x : y; }

// rows of `bytes` bytes into a block of zeros, for blocks that stick out of the operand.
template <class K, int64_t kRows, int64_t kBytes>
struct GemmI8Edge {
  int8_t block[kRows][kBytes];

  void Fill(const int8_t* source, int64_t ld, int64_t rows, int64_t bytes) {
    __builtin_memset(block, 0, sizeof(block));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < bytes; ++i) block[r][i] = source[r * ld + i];
    }
  }
};

// One panel, k contiguous.
template <class K, bool kIsA>
void GemmI8PackLines(const GemmI8PackArgs& args, int64_t panel) {
  constexpr int64_t kWidth = kIsA ? K::kTile.rows : K::kTile.columns;
  constexpr int64_t kLines = kWidth < K::kLines ? kWidth : K::kLines;
  constexpr int64_t kBytes = K::kGroups * K::kTile.group_depth;
  static_assert(kWidth % kLines == 0);
  static_assert(K::kGroups <= kGemmI8GroupBlock && kGemmI8GroupBlock % K::kGroups == 0);
  for (int64_t line = 0; line < kWidth; line += kLines) {
    const int64_t lines = Smaller(kLines, args.lines - panel * kWidth - line);
    std::byte* to = args.panels + panel * args.pitch + line * 4;
    const int8_t* from = args.source + (panel * kWidth + line) * args.ld;
    for (int64_t k = 0; k < args.k; k += kBytes, to += K::kGroups * kWidth * 4) {
      if (lines == kLines && k + kBytes <= args.k) {
        K::template Transpose<kIsA, kLines>(from + k, args.ld, to, kWidth * 4);
        continue;
      }
      GemmI8Edge<K, kLines, kBytes> edge;
      edge.Fill(from + k, args.ld, lines, Smaller(kBytes, args.k - k));
      K::template Transpose<kIsA, kLines>(edge.block[0], kBytes, to, kWidth * 4);
    }
  }
}

// Group k of the panel's lines, which may stick out of the operand.
template <class K, bool kIsA>
void GemmI8PackEdgeGroup(const GemmI8PackArgs& args, int64_t panel, int64_t k, std::byte* to) {
  constexpr int64_t kWidth = kIsA ? K::kTile.rows : K::kTile.columns;
  constexpr int64_t kDepth = K::kTile.group_depth;
  for (int64_t line = 0; line < kWidth; line += K::kLines, to += K::kLines * 4) {
    const int64_t at = panel * kWidth + line;
    const int64_t left = args.lines - at;
    GemmI8Edge<K, kDepth, K::kLines> edge;
    edge.Fill(args.source + k * args.ld + at, args.ld, left > 0 ? Smaller(kDepth, args.k - k) : 0,
              Smaller(K::kLines, left));
    K::template Interleave<kIsA>(edge.block[0], K::kLines, to);
  }
}

// Panels [first, last), lines contiguous: all of them group by group, so that whole cache lines of
// the source are used at once.
template <class K, bool kIsA>
void GemmI8PackGroups(const GemmI8PackArgs& args, int64_t first, int64_t last) {
  constexpr int64_t kWidth = kIsA ? K::kTile.rows : K::kTile.columns;
  constexpr int64_t kDepth = K::kTile.group_depth;
  constexpr int64_t kLinesRead = (kWidth + K::kLines - 1) / K::kLines * K::kLines;
  // Panels before `whole` have all the lines that are read for them.
  int64_t whole = last;
  while (whole > first && (whole - 1) * kWidth + kLinesRead > args.lines) --whole;
  const int64_t pitch = args.pitch;
  const int64_t ld = args.ld;
  for (int64_t k = 0; k < args.k; k += kDepth) {
    std::byte* to = args.panels + first * pitch + k * (kWidth * 4 / kDepth);
    const int8_t* from = args.source + k * ld + first * kWidth;
    const int64_t fast = k + kDepth <= args.k ? whole : first;
    for (int64_t panel = first; panel < fast; ++panel, to += pitch, from += kWidth) {
      for (int64_t line = 0; line < kWidth; line += K::kLines) {
        K::template Interleave<kIsA>(from + line, ld, to + line * 4);
      }
    }
    for (int64_t panel = fast; panel < last; ++panel, to += pitch) {
      GemmI8PackEdgeGroup<K, kIsA>(args, panel, k, to);
    }
  }
}

template <class K, bool kIsA>
void GemmI8PackSide(const GemmI8PackArgs& args, Range range) {
  constexpr int64_t kTogether = 8;  // panels: enough for whole cache lines, few enough for L2
  for (int64_t first = range.begin; first < range.end; first += kTogether) {
    const int64_t last = Smaller(range.end, first + kTogether);
    if (args.lines_contiguous) {
      GemmI8PackGroups<K, kIsA>(args, first, last);
    } else {
      for (int64_t panel = first; panel < last; ++panel) GemmI8PackLines<K, kIsA>(args, panel);
    }
    if constexpr (!kIsA) {
      const int64_t groups = (args.k + K::kTile.group_depth - 1) / K::kTile.group_depth;
      for (int64_t panel = first; panel < last; ++panel) {
        K::Correct(args.panels + panel * args.pitch, groups,
                   args.corrections + panel * K::kTile.columns);
      }
    }
  }
}

template <class K>
void GemmI8PackBody(const GemmI8PackArgs& args, Range range) {
  if (args.is_a) {
    GemmI8PackSide<K, true>(args, range);
  } else {
    GemmI8PackSide<K, false>(args, range);
  }
}

// rows x columns of a tile, from its buffer to the output at `out`.
template <class K>
void GemmI8StoreRaw(int32_t* out, int64_t ld, const int32_t* tile, int64_t rows, int64_t columns) {
  using V = typename K::V;
  for (int64_t r = 0; r < rows; ++r) {
    ForEachVector<V>(0, columns, [&](int64_t c, auto count) {
      V::StoreI(out + r * ld + c, V::LoadI(tile + r * K::kTile.columns + c), count);
    });
  }
}

// The same, dequantised; the tile's first element is [m, n] of the product.
template <class K, class T>
void GemmI8StoreFloats(T* out, const GemmI8Args& gemm, const int32_t* tile, int64_t m, int64_t n,
                       int64_t rows, int64_t columns) {
  using V = typename K::V;
  const GemmI8Scale& row_scale = gemm.row_scale;
  const GemmI8Scale& col_scale = gemm.col_scale;
  for (int64_t r = 0; r < rows; ++r) {
    const typename V::F row_value = V::Set(row_scale.values[row_scale.single ? 0 : m + r]);
    T* to = out + (m + r) * gemm.ld_out + n;
    ForEachVector<V>(0, columns, [&](int64_t c, auto count) {
      const typename V::I p = V::LoadI(tile + r * K::kTile.columns + c);
      const typename V::F col_value =
          col_scale.single ? V::Set(*col_scale.values) : V::Load(col_scale.values + n + c, count);
      StoreV<V>(to + c, DequantizeV<V>(p, row_value, col_value), count);
    });
  }
}

template <class K>
void GemmI8MultiplyTile(const GemmI8MultiplyArgs& args, int64_t a_panel, int64_t b_panel) {
  constexpr GemmI8Tile kTile = K::kTile;
  const int64_t rows = Smaller(kTile.rows, args.m_count - a_panel * kTile.rows);
  const int64_t columns = Smaller(kTile.columns, args.n_count - b_panel * kTile.columns);
  const int64_t m = args.m_first + a_panel * kTile.rows;
  const int64_t n = args.n_first + b_panel * kTile.columns;
  const std::byte* a = args.a_panels + a_panel * args.a_pitch;
  const std::byte* b = args.b_panels + b_panel * args.b_pitch;
  const int32_t* corrections = args.corrections + b_panel * kTile.columns;
  const GemmI8Args& gemm = *args.gemm;
  if (gemm.out_i32 != nullptr && rows == kTile.rows && columns == kTile.columns) {
    K::Multiply(rows, a, b, args.groups, corrections, gemm.out_i32 + m * gemm.ld_out + n,
                gemm.ld_out);
    return;
  }
  alignas(64) int32_t tile[kTile.rows * kTile.columns];
  K::Multiply(rows, a, b, args.groups, corrections, tile, kTile.columns);
  if (gemm.out_i32 != nullptr) {
    GemmI8StoreRaw<K>(gemm.out_i32 + m * gemm.ld_out + n, gemm.ld_out, tile, rows, columns);
  } else if (gemm.out_f32 != nullptr) {
    GemmI8StoreFloats<K>(gemm.out_f32, gemm, tile, m, n, rows, columns);
  } else {
    GemmI8StoreFloats<K>(gemm.out_bf16, gemm, tile, m, n, rows, columns);
  }
}

template <class K>
void GemmI8MultiplyBody(const GemmI8MultiplyArgs& args, Range range) {
  const int64_t b_panels = (args.n_count + K::kTile.columns - 1) / K::kTile.columns;
  for (int64_t a_panel = range.begin; a_panel < range.end; ++a_panel) {
    for (int64_t b_panel = 0; b_panel < b_panels; ++b_panel) {
      GemmI8MultiplyTile<K>(args, a_panel, b_panel);
    }
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_BODY_H_
