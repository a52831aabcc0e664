// SPDX-License-Identifier: Apache-2.0
//
// The inner kernels of the f32 matrix product over a tile backend G: a vector backend V (G::V) with
//   kVectors: the tile in registers is kGemmTileRows x (kVectors * V::kWidth);
//   Transpose4(x): of four registers, each group of four lanes as a 4x4 matrix, transposed;
//   StoreQuad<q>(p, x): lanes 4q ... 4q + 3 of x to p.
#ifndef LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_BODY_H_
#define LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_BODY_H_

#include "kernels/gemm_f32/gemm_f32_inner.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

static inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// p + n, null if p is.
template <class T>
static inline T* Offset(T* p, int64_t n) {
  return p == nullptr ? nullptr : p + n;
}

// Asks for the line at p + offset, which need not exist; kLevel 3 brings it to the first-level
// cache, 2 to the second, where lines a power of two apart do not push each other out.
template <int kLevel, class T>
static inline void Prefetch(const T* p, int64_t offset) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(offset) * sizeof(T);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, kLevel);
}

// ---- Packing ----

// The groups of four lanes of x that belong to the panels that begin at out, out + next, ...; the
// first `lanes` lanes exist.
template <class G, int q = 0>
static inline void StoreQuads(float* out, int64_t next, typename G::V::F x, int64_t lanes) {
  if constexpr (4 * q < G::V::kWidth) {
    if (4 * q >= lanes) return;
    G::template StoreQuad<q>(out, x);
    StoreQuads<G, q + 1>(out + next, next, x, lanes);
  }
}

// Panels of four lanes that lie side by side: a vector of lanes serves several panels, and eight
// values of k at a time fill whole lines of each.
template <class G, class T>
static void PackQuadsSideBySide(const GemmF32PackArgs& args, Range panels) {
  using V = typename G::V;
  const T* in = static_cast<const T*>(args.in.data);
  const int64_t end = Least(4 * panels.end, args.lanes);
  for (int64_t k0 = 0; k0 < args.depth; k0 += 8) {
    const int64_t k1 = Least(k0 + 8, args.depth);
    ForEachVector<V>(4 * panels.begin, end, [&](int64_t lane, auto n) {
      for (int64_t k = k0; k < k1; ++k) {
        const T* from = in + k * args.stride + lane;
        Prefetch<2>(from, 8 * args.stride);
        StoreQuads<G>(args.out + lane * args.depth + 4 * k, 4 * args.depth,
                      SnapV<V>(V::Load(from, n)), end - lane);
      }
    });
  }
}

// Wide panels of lanes that lie side by side: row by row, as it lies in memory.
template <class G, class T>
static void PackSideBySide(const GemmF32PackArgs& args, Range panels) {
  using V = typename G::V;
  constexpr int64_t kWidth = G::kVectors * V::kWidth;
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t k = 0; k < args.depth; ++k) {
    for (int64_t p = panels.begin; p < panels.end; ++p) {
      const T* from = static_cast<const T*>(args.in.data) + k * args.stride + p * kWidth;
      float* out = args.out + (p * args.depth + k) * kWidth;
      const int64_t lanes = args.lanes - p * kWidth;
      for (int64_t l = 0; l < kWidth; l += kLine) Prefetch<2>(from, 4 * args.stride + l);
      if (lanes >= kWidth) {
#pragma GCC unroll 8
        for (int64_t l = 0; l < kWidth; l += V::kWidth) {
          V::StoreRaw(out + l, SnapV<V>(V::Load(from + l)));
        }
      } else {
        for (int64_t l = 0; l < kWidth; l += V::kWidth) {
          const int64_t n = lanes <= l ? 0 : Least(lanes - l, V::kWidth);
          V::StoreRaw(out + l, SnapV<V>(V::Load(from + l, static_cast<int>(n))));
        }
      }
    }
  }
}

// Four lanes (those from `lanes` on are zeros) at V::kWidth values of k (n of them: All{} or a
// count), from rows along k.
template <class G, int kWidth, int q = 0, class N>
static inline void StoreTransposed(float* out, const typename G::V::F (&quad)[4], N n) {
  if constexpr (4 * q < G::V::kWidth) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      if constexpr (!__is_same(N, All)) {
        if (4 * q + c >= n) return;
      }
      G::template StoreQuad<q>(out + (4 * q + c) * kWidth, quad[c]);
    }
    StoreTransposed<G, kWidth, q + 1>(out, quad, n);
  }
}
template <class G, int kWidth, class T, class N>
static inline void PackFour(float* out, const T* in, int64_t stride, int64_t lanes, N n) {
  using V = typename G::V;
  typename V::F quad[4];
#pragma GCC unroll 4
  for (int l = 0; l < 4; ++l) {
    quad[l] = l < lanes ? SnapV<V>(V::Load(in + l * stride, n)) : V::Set(0.0f);
  }
  G::Transpose4(quad);  // quad[c] holds k = c, 4 + c, ...
  StoreTransposed<G, kWidth>(out, quad, n);
}

// Rows along k, so many lanes at a time that lines of the panels fill up while they are near.
template <class G, int kWidth, class T>
static void PackAlongK(const GemmF32PackArgs& args, Range panels) {
  using V = typename G::V;
  constexpr int64_t kGroup = kWidth % 16 == 0 ? 16 : kWidth % 8 == 0 ? 8 : 4;
  for (int64_t lane = kWidth * panels.begin; lane < kWidth * panels.end; lane += kGroup) {
    const T* in = static_cast<const T*>(args.in.data) + lane * args.stride;
    float* out = args.out + lane / kWidth * kWidth * args.depth + lane % kWidth;
    ForEachVector<V>(0, args.depth, [&](int64_t k, auto n) {
      for (int64_t l = 0; l < kGroup; l += 4) {
        const T* from = in + l * args.stride + k;
        for (int64_t i = 0; i < 4; ++i) Prefetch<2>(from, (kGroup + i) * args.stride);
        PackFour<G, kWidth>(out + k * kWidth + l, from, args.stride, args.lanes - lane - l, n);
      }
    });
  }
}

template <class G, class T>
static void PackPanels(const GemmF32PackArgs& args, Range panels) {
  constexpr int kColumns = G::kVectors * G::V::kWidth;
  if (args.width == kColumns) {
    args.k_contiguous ? PackAlongK<G, kColumns, T>(args, panels)
                      : PackSideBySide<G, T>(args, panels);
  } else {
    args.k_contiguous ? PackAlongK<G, kGemmTileRows, T>(args, panels)
                      : PackQuadsSideBySide<G, T>(args, panels);
  }
}

template <class G>
static void GemmF32PackBody(const GemmF32PackArgs& args, Range panels) {
  if (args.in.kind == ElementKind::kFloat32) {
    PackPanels<G, float>(args, panels);
  } else {
    PackPanels<G, BFloat16>(args, panels);
  }
}

// ---- Multiplying ----

template <class V>
static inline typename V::F CanonNan(typename V::F x) {
  return V::Select(V::IsNan(x), V::AsFloat(V::SetI(0x7fc00000)), x);
}

// sums (and out) at one place, n lanes.
template <class V, class N>
static inline void StoreSum(const GemmF32TilesArgs& args, float* sum, BFloat16* out,
                            typename V::F acc, N n) {
  const typename V::F x = args.add ? V::Add(V::Load(sum, n), acc) : acc;
  if (!args.last) {
    V::StoreRaw(sum, x, n);
  } else if (args.out == nullptr) {
    V::StoreRaw(sum, CanonNan<V>(x), n);
  } else {
    StoreV<V>(out, x, n);
  }
}

// The rows and kVectors vectors of one tile; `rows` and `columns` are how much of c there is from
// here on.
template <class G, int kVectors>
static void Tile(const GemmF32TilesArgs& args, const float* a, const float* b, float* sums,
                 BFloat16* out, int64_t rows, int64_t columns) {
  using V = typename G::V;
  constexpr int kRows = kGemmTileRows;
  constexpr int kColumns = kVectors * V::kWidth;
  typename V::F acc[kRows][kVectors];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) acc[r][v] = V::Set(0.0f);
  }
  // Steps of k, between which the lines of c are asked for, a row at a time: all at once they would
  // hold up the operands. All are on their way when half of the work is done.
  const int64_t step = args.depth / (2 * kRows) + 1;
  for (int64_t k = 0, row = 0; k < args.depth; ++row) {
#pragma GCC unroll 32
    for (int j = 0; j < kColumns; j += 16) Prefetch<3>(sums, row * args.sums_stride + j);
    for (const int64_t end = Least(k + step, args.depth); k < end; ++k) {
      typename V::F column[kVectors];
#pragma GCC unroll 32
      for (int v = 0; v < kVectors; ++v) column[v] = V::Load(b + v * V::kWidth);
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
        const typename V::F row_a = V::Set(a[r]);
#pragma GCC unroll 32
        for (int v = 0; v < kVectors; ++v) acc[r][v] = V::Fma(row_a, column[v], acc[r][v]);
      }
      a += kRows;
      b += G::kVectors * V::kWidth;
    }
  }
  if (rows >= kRows && columns >= kColumns && args.out == nullptr) {
    const auto each = [&](auto&& store) {
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 32
        for (int v = 0; v < kVectors; ++v) {
          store(sums + r * args.sums_stride + v * V::kWidth, acc[r][v]);
        }
      }
    };
    if (args.add && args.last) {
      each([](float* p, typename V::F x) { V::StoreRaw(p, CanonNan<V>(V::Add(V::Load(p), x))); });
    } else if (args.add) {
      each([](float* p, typename V::F x) { V::StoreRaw(p, V::Add(V::Load(p), x)); });
    } else if (args.last) {
      each([](float* p, typename V::F x) { V::StoreRaw(p, CanonNan<V>(x)); });
    } else {
      each([](float* p, typename V::F x) { V::StoreRaw(p, x); });
    }
    return;
  }
  alignas(64) float tile[kRows * kColumns];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) V::StoreRaw(tile + r * kColumns + v * V::kWidth, acc[r][v]);
  }
  for (int64_t r = 0; r < Least(rows, kRows); ++r) {
    ForEachVector<V>(0, Least(columns, kColumns), [&](int64_t j, auto n) {
      StoreSum<V>(args, Offset(sums, r * args.sums_stride + j),
                  Offset(out, r * args.out_stride + j), V::Load(tile + r * kColumns + j), n);
    });
  }
}

// The narrowest tile that holds the columns that are left.
template <class G, int kVectors>
static inline void FittingTile(const GemmF32TilesArgs& args, const float* a, const float* b,
                               float* sums, BFloat16* out, int64_t rows, int64_t columns) {
  if constexpr (kVectors > 1) {
    if (columns <= (kVectors - 1) * G::V::kWidth) {
      return FittingTile<G, kVectors - 1>(args, a, b, sums, out, rows, columns);
    }
  }
  Tile<G, kVectors>(args, a, b, sums, out, rows, columns);
}

template <class G>
static void GemmF32TilesBody(const GemmF32TilesArgs& args, Range tile_rows) {
  constexpr int64_t kColumns = G::kVectors * G::V::kWidth;
  for (int64_t t = tile_rows.begin; t < tile_rows.end; ++t) {
    const int64_t i = t * kGemmTileRows;
    for (int64_t j = 0; j < args.columns; j += kColumns) {
      FittingTile<G, G::kVectors>(args, args.a + i * args.depth, args.b + j * args.depth,
                                  Offset(args.sums, i * args.sums_stride + j),
                                  Offset(args.out, i * args.out_stride + j), args.rows - i,
                                  args.columns - j);
    }
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_BODY_H_
