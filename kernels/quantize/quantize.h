// SPDX-License-Identifier: Apache-2.0
//
// Quantisation of floats to int8 with one step per tensor, per row or per column, chosen so that
// nothing is clipped: the largest magnitude becomes 127. The formulas are in
// kernels/quantize/quantizer.h; weights, whose step follows their mean, are in
// kernels/quantize/weights.h; the way back is kernels/quantize/dequantize.h.
#ifndef LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_H_
#define LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_H_

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/quantize/quantizer.h"
#include "kernels/range.h"

namespace lockstep::kernels {

struct Context;

constexpr int64_t kAmaxBlock = 32768;  // elements whose largest magnitude one item finds
constexpr int64_t kColumnPanel = 64;   // columns of one item of the column kernels

// amax[b] = the largest |x[i]| of block b, as the largest of bits(x[i]) & 0x7fffffff: order-free, 0
// for an empty tensor, NaN if one element is NaN.
struct AmaxBlocksArgs {
  float* amax;      // [ceil(count / kAmaxBlock)]
  ConstElements x;  // [count] bf16 or f32
  int64_t count;

  int64_t items() const { return (count + kAmaxBlock - 1) / kAmaxBlock; }  // blocks
  int64_t grain() const { return 1; }
};

// q[i] = QuantizeOne(x[i], QuantizerOfAmax(amax)).
struct QuantizeArgs {
  int8_t* q;        // [count]
  ConstElements x;  // [count] bf16 or f32
  float amax;       // of x, or of more; canonical and not negative, or NaN
  int64_t count;

  int64_t items() const { return count; }  // elements
  int64_t grain() const { return 16384; }
};

// Each row r by its own amax: scale[r] = Canon(StepOfAmax(amax) * gain), q by
// QuantizerOfAmax(amax). gain, one factor for all rows, lets a caller fold a constant of the later
// dequantisation into the scale; 1 leaves the step as it is.
struct QuantizeRowsArgs {
  int8_t* q;        // [rows, cols]
  float* scale;     // [rows]
  ConstElements x;  // [rows, cols] bf16 or f32
  int64_t rows;
  int64_t cols;
  float gain = 1.0f;

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 16384 / (cols + 1); }
};

// The same for each column.
struct QuantizeColumnsArgs {
  int8_t* q;        // [rows, cols]
  float* scale;     // [cols]
  ConstElements x;  // [rows, cols] bf16 or f32
  int64_t rows;
  int64_t cols;
  float gain = 1.0f;

  int64_t items() const { return (cols + kColumnPanel - 1) / kColumnPanel; }  // panels
  int64_t grain() const { return 1 + 256 / (rows + 1); }
};

// The largest magnitude of x [count], bf16 or f32; 0 if there are none.
float Amax(const Context& context, ConstElements x, int64_t count);

// Quantises x with one step for the whole tensor, the activations' rule:
//   amax = Amax(x),  *step = StepOfAmax(amax),  q[i] = QuantizeOne(x[i], QuantizerOfAmax(amax)).
// The dequantised value is q[i] * step, within half a step (and its rounding) of x[i].
// Source: NUMERICS §6; the paper's §3.2, "activations with a per-tensor scale".
struct QuantizeTensorArgs {
  int8_t* q;        // [count]
  float* step;      // [1]
  ConstElements x;  // [count] bf16 or f32
  int64_t count;
};
void QuantizeTensor(const Context& context, const QuantizeTensorArgs& args);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_QUANTIZE_QUANTIZE_H_
