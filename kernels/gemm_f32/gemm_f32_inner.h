// SPDX-License-Identifier: Apache-2.0
//
// The two inner kernels that the driver in gemm_f32.cc is made of: packing a block of an operand
// into panels, and multiplying packed panels tile by tile. For that driver alone; the operation's
// contract is in gemm_f32.h.
#ifndef LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_INNER_H_
#define LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_INNER_H_

#include <cstdint>

#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// The part of c that is held in registers: so many rows by so many columns. The rows are the same
// for all, so that packing a is, too; the columns are a multiple of 8.
inline constexpr int64_t kGemmTileRows = 4;
inline constexpr int64_t kGemmTileColumnsAvx2 = 24;
inline constexpr int64_t kGemmTileColumnsAvx512 = 96;
inline constexpr int64_t kGemmTileColumnsNeon = 24;

// Packs lanes (rows of a, or columns of b) over at most 256 values of k, snapped:
// out[p, k, l] = Snap(lane p * width + l at k), and +0 where there is no such lane.
struct GemmF32PackArgs {
  float* out;         // [panels, depth, width]
  ConstElements in;   // from the first lane's element at the first k on
  bool k_contiguous;  // lane l at k is in[l * stride + k], else in[k * stride + l]
  int64_t stride;     // in elements
  int64_t lanes;
  int64_t depth;  // values of k
  int64_t width;  // lanes of a panel: the tile's rows or columns

  int64_t items() const { return (lanes + width - 1) / width; }  // panels
};

// Multiplies one block of k: for every tile, acc from +0 as gemm_f32.h says, then
// sum = add ? sums + acc : acc (which is +0 + acc, since acc is never -0). Where `last` is set, the
// sum is stored as a result: with the canonical NaN, to `out` in bf16 unless that is null, else to
// sums. Without `last` it goes to sums as it is.
struct GemmF32TilesArgs {
  float* sums;     // [rows, columns]
  BFloat16* out;   // [rows, columns], or null
  const float* a;  // [row panels, depth, tile rows], packed
  const float* b;  // [column panels, depth, tile columns], packed
  int64_t sums_stride;
  int64_t out_stride;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  bool add;
  bool last;

  int64_t items() const { return (rows + kGemmTileRows - 1) / kGemmTileRows; }  // rows of tiles
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_F32_GEMM_F32_INNER_H_
