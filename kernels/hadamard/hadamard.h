// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard transform of blocks of a matrix, along its rows or down its columns, alone or
// fused with the quantisation that follows it in the int8 backward pass: a rotation that spreads an
// outlier over its block, so that the step of a row or column need not be as coarse as the outlier.
// The transform is not normalised: twice in a row it multiplies by the block's length.
// Source: the paper's §3.2, "a Walsh–Hadamard rotation along the contraction dimension".
#ifndef LOCKSTEP_KERNELS_HADAMARD_HADAMARD_H_
#define LOCKSTEP_KERNELS_HADAMARD_HADAMARD_H_

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/quantize/quantize.h"
#include "kernels/quantize/quantizer.h"
#include "kernels/range.h"

namespace lockstep::kernels {

constexpr int64_t kHadamardBlockMax = 1024;

// The transform H of a block v[0 .. block-1], block a power of two from 1 to kHadamardBlockMax:
//
//   v[i] = Snap(x[i])
//   for h = 1, 2, 4, ... below block, for each i without bit h:
//     (v[i], v[i + h]) = (v[i] + v[i + h], v[i] - v[i + h])
//
// in binary32: natural (Sylvester) order. Snapped values are multiples of 2^-62, so are all sums,
// and none is subnormal. The sum of two is never -0, since a snapped value is not.
// With block 1 it is Snap alone.

// Along rows: out[r, b * block + i] = Canon(H(x[r, b * block ...])[i]). As block divides the row's
// length, rows need not be told apart. out may be x if x is f32.
struct HadamardRowsArgs {
  float* out;       // [count]
  ConstElements x;  // [count] bf16 or f32
  int64_t count;    // a multiple of block
  int64_t block;

  int64_t items() const { return count / block; }  // blocks
  int64_t grain() const { return 1 + 16384 / block; }
};

// Down columns: the same with x[b * block + i, c]. Not in place.
struct HadamardColumnsArgs {
  float* out;       // [rows, cols]
  ConstElements x;  // [rows, cols] bf16 or f32
  int64_t rows;     // a multiple of block
  int64_t cols;
  int64_t block;

  int64_t items() const { return (cols + kColumnPanel - 1) / kColumnPanel; }  // panels
  int64_t grain() const { return 1 + 256 / (rows + 1); }
};

// Along rows, then quantised by rows: the bits of HadamardRows into an f32 matrix, then
// QuantizeRows of that with the same gain; the f32 matrix is never held.
struct HadamardQuantizeRowsArgs {
  int8_t* q;        // [rows, cols]
  float* scale;     // [rows]
  ConstElements x;  // [rows, cols] bf16 or f32
  int64_t rows;
  int64_t cols;  // a multiple of block
  int64_t block;
  float gain = 1.0f;

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 16384 / (cols + 1); }
};

// Down columns, then quantised by columns: the bits of HadamardColumns into an f32 matrix, then
// QuantizeColumns of that with the same gain. x may also be int8, which stands for
//   float(x[r, c])                            without row_scale: exact integers up to 2^17;
//   Canon(float(x[r, c]) * row_scale[r])      with row_scale: the bits of DequantizeRows to f32.
// x is read twice.
struct HadamardQuantizeColumnsArgs {
  int8_t* q;                         // [rows, cols]
  float* scale;                      // [cols]
  ConstElements x;                   // [rows, cols] bf16, f32 or int8
  const float* row_scale = nullptr;  // [rows] or null; with int8 only
  int64_t rows;                      // a multiple of block
  int64_t cols;
  int64_t block;
  float gain = 1.0f;

  int64_t items() const { return (cols + kColumnPanel - 1) / kColumnPanel; }  // panels
  int64_t grain() const { return 1 + 256 / (rows + 1); }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_HADAMARD_HADAMARD_H_
