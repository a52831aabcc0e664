// SPDX-License-Identifier: Apache-2.0
//
// The two parts that GemmI8's driver runs, in the form that each instruction set implements:
// packing an operand into panels, and multiplying panels tile by tile. Not for use outside this
// folder.
//
// A panel holds `width` lines of an operand (rows of A, columns of B) over the whole depth k, cut
// into groups of a few consecutive k that fill 4 bytes: group g of line l is the 4 bytes at panel +
// (g * width + l) * 4. Lines and k beyond the operand's end hold zeros.
#ifndef LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_INNER_H_
#define LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_INNER_H_

#include <cstddef>
#include <cstdint>

#include "kernels/gemm_i8/gemm_i8.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// The tile that a kernel keeps in registers, and how deep a group is: 4 bytes hold 4 int8, or 2
// int16 where the machine multiplies those.
struct GemmI8Tile {
  int64_t rows;
  int64_t columns;
  int64_t group_depth;
};

// Largest number of groups that packing writes at once; a panel has room for a multiple of it.
constexpr int64_t kGemmI8GroupBlock = 16;

constexpr GemmI8Tile kGemmI8TileAvx512 = {.rows = 14, .columns = 32, .group_depth = 4};
constexpr GemmI8Tile kGemmI8TileAvx2 = {.rows = 6, .columns = 16, .group_depth = 2};
constexpr GemmI8Tile kGemmI8TileNeon = {.rows = 8, .columns = 12, .group_depth = 4};

// Packs lines [first, first + lines) of an operand; items are panels.
struct GemmI8PackArgs {
  std::byte* panels;     // [panels, pitch], 64-byte aligned
  int32_t* corrections;  // [panels * width], of B: what the machine's multiplication adds too much
  int64_t pitch;         // bytes from panel to panel
  const int8_t* source;  // element 0 of the first line
  int64_t ld;
  bool lines_contiguous;  // else k is
  bool is_a;
  int64_t width;  // the tile's rows or columns
  int64_t lines;
  int64_t k;

  int64_t items() const { return (lines + width - 1) / width; }
  // Several panels at a time use the whole of a cache line where lines are contiguous; and tens of
  // microseconds of work.
  int64_t grain() const { return (int64_t{1} << 17) / (k * width + 1) + 1; }
};

// Multiplies packed rows with packed columns, writing rows from m_first and columns from n_first of
// gemm's output. The range is of A's panels: each meets all of B's before the next does.
struct GemmI8MultiplyArgs {
  const GemmI8Args* gemm;
  const std::byte* a_panels;
  int64_t a_pitch;
  const std::byte* b_panels;
  int64_t b_pitch;
  const int32_t* corrections;
  int64_t groups;
  int64_t m_first;
  int64_t m_count;
  int64_t n_first;
  int64_t n_count;
};

// The scalar definition, the whole product.
void GemmI8Reference(const GemmI8Args& args);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GEMM_I8_GEMM_I8_INNER_H_
