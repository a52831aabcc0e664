// SPDX-License-Identifier: Apache-2.0
//
// The inner kernels of the f32 matrix product over a tile backend G: a vector backend V (G::V) with
//   kRows, kVectors: the tile in registers is kRows x (kVectors * V::kWidth);
//   Transpose4(rows): of four registers, each group of four lanes as a 4x4 matrix, transposed;
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

// ---- Packing ----

// A panel row of kWidth lanes that lie side by side; `left` lanes of the operand begin at `in`.
template <class G, class T, int kWidth>
static inline void PackLanes(float* out, const T* in, int64_t left) {
  using V = typename G::V;
  constexpr int kWhole = kWidth / V::kWidth * V::kWidth;
  constexpr int kRest = kWidth - kWhole;
  if (left >= kWhole + (kRest > 0 ? V::kWidth : 0)) {
#pragma GCC unroll 16
    for (int l = 0; l < kWhole; l += V::kWidth) {
      V::StoreRaw(out + l, SnapV<V>(V::Load(in + l, All{})), All{});
    }
    if constexpr (kRest > 0) {
      V::StoreRaw(out + kWhole, SnapV<V>(V::Load(in + kWhole, All{})), kRest);
    }
    return;
  }
  for (int l = 0; l < kWidth; l += V::kWidth) {
    const int room = static_cast<int>(Least(V::kWidth, kWidth - l));
    const int n = static_cast<int>(left <= l ? 0 : Least(room, left - l));
    V::StoreRaw(out + l, SnapV<V>(V::Load(in + l, n)), room);
  }
}

// Asks for the line at p, which need not exist.
template <class T>
static inline void Prefetch(const T* p, int64_t offset) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) +
                                                   static_cast<uintptr_t>(offset) * sizeof(T)));
}

// Eights of k: reading goes along the rows in memory, and meanwhile the next eight are fetched.
template <class G, class T, int kWidth>
static void PackSideBySide(const GemmF32PackArgs& args, Range eights) {
  constexpr int kLine = 64 / sizeof(T);
  const T* in = static_cast<const T*>(args.in);
  for (int64_t k0 = 8 * eights.begin; k0 < Least(8 * eights.end, args.depth); k0 += 8) {
    const int64_t k1 = Least(k0 + 8, args.depth);
    for (int64_t p = 0; p < args.panels(); ++p) {
      for (int64_t k = k0; k < k1; ++k) {
        const T* from = in + k * args.stride + p * kWidth;
        for (int l = 0; l < kWidth; l += kLine) Prefetch(from, 8 * args.stride + l);
        PackLanes<G, T, kWidth>(args.out + (p * args.depth + k) * kWidth, from,
                                args.lanes - p * kWidth);
      }
    }
  }
}

// Four lanes (fewer, if `lanes` is) at V::kWidth values of k (n of them: All{} or a count), from
// rows along k.
template <class G, int kWidth, class T, class N>
static inline void PackFour(float* out, const T* in, int64_t stride, int64_t lanes, N n) {
  using V = typename G::V;
  typename V::F quad[4];
#pragma GCC unroll 4
  for (int l = 0; l < 4; ++l) {
    Prefetch(in, (4 + l) * stride);  // the next four
    quad[l] = l < lanes ? SnapV<V>(V::Load(in + l * stride, n)) : V::Set(0.0f);
  }
  G::Transpose4(quad);  // quad[c] holds k = c, 4 + c, ...
  const auto store = [&]<int q>() {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      if constexpr (__is_same(N, All)) {
        G::template StoreQuad<q>(out + (4 * q + c) * kWidth, quad[c]);
      } else {
        if (4 * q + c < n) G::template StoreQuad<q>(out + (4 * q + c) * kWidth, quad[c]);
      }
    }
  };
  store.template operator()<0>();
  if constexpr (V::kWidth >= 8) store.template operator()<1>();
  if constexpr (V::kWidth >= 16) {
    store.template operator()<2>();
    store.template operator()<3>();
  }
}

template <class G, class T, int kWidth>
static void PackAlongK(const GemmF32PackArgs& args, Range quads) {
  using V = typename G::V;
  for (int64_t lane = 4 * quads.begin; lane < 4 * quads.end; lane += 4) {
    const T* in = static_cast<const T*>(args.in) + lane * args.stride;
    float* out = args.out + lane / kWidth * kWidth * args.depth + lane % kWidth;
    ForEachVector<V>(0, args.depth, [&](int64_t k, auto n) {
      PackFour<G, kWidth>(out + k * kWidth, in + k, args.stride, args.lanes - lane, n);
    });
  }
}

template <class G, int kWidth>
static void PackItems(const GemmF32PackArgs& args, Range items) {
  if (args.type == ElementType::kFloat32) {
    args.k_contiguous ? PackAlongK<G, float, kWidth>(args, items)
                      : PackSideBySide<G, float, kWidth>(args, items);
  } else {
    args.k_contiguous ? PackAlongK<G, BFloat16, kWidth>(args, items)
                      : PackSideBySide<G, BFloat16, kWidth>(args, items);
  }
}

template <class G>
static void GemmF32PackBody(const GemmF32PackArgs& args, Range items) {
  constexpr int kColumns = G::kVectors * G::V::kWidth;
  if (args.width == kColumns) {
    PackItems<G, kColumns>(args, items);
  } else {
    PackItems<G, G::kRows>(args, items);
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
  constexpr int kRows = G::kRows;
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
    for (int j = 0; j < kColumns; j += 16) Prefetch(sums, row * args.sums_stride + j);
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
static void GemmF32TilesBody(const GemmF32TilesArgs& args, Range tiles) {
  constexpr int64_t kColumns = G::kVectors * G::V::kWidth;
  const int64_t panels = args.column_panels();
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const int64_t i = t / panels * G::kRows;
    const int64_t j = t % panels * kColumns;
    FittingTile<G, G::kVectors>(args, args.a + i * args.depth, args.b + j * args.depth,
                                Offset(args.sums, i * args.sums_stride + j),
                                Offset(args.out, i * args.out_stride + j), args.rows - i,
                                args.columns - j);
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_BODY_H_
