// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding, and its backward pass, which is the rotation by the negative angle.
//
// Pairing: "half-split", as in Llama and Hugging Face's rotate_half: element i of a head, i <
// d_head / 2, is rotated with element i + d_head / 2, by the angle position * theta^(-2 i /
// d_head). (Not the interleaved pairing of elements 2 i and 2 i + 1.)
#ifndef LOCKSTEP_KERNELS_ROPE_ROPE_H_
#define LOCKSTEP_KERNELS_ROPE_ROPE_H_

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// For each head, with x1 and x2 an element of its first half and the one paired with it, c and s
// the table's cos and sin, and s negated if `backward`:
//   y1 = bf16(fma(x1, c, -Canon(x2 * s)))
//   y2 = bf16(fma(x2, c,  Canon(x1 * s)))
// Canon, as the products can be tiny where the sums are just not. The tensors are [tokens, heads,
// d_head], token t at t * stride and head h of it at h * d_head, so that the q or k heads inside a
// fused qkv tensor are rotated where they stand. Token t has position t % sequence. out may be x;
// otherwise they do not overlap.
struct RopeArgs {
  BFloat16* out;      // [tokens, heads, d_head], stride out_stride
  const BFloat16* x;  // [tokens, heads, d_head], stride x_stride
  const float* cos;   // [positions >= min(sequence, tokens), d_head / 2], canonical
  const float* sin;   // as cos
  int64_t tokens;
  int64_t heads;
  int64_t d_head;  // even
  int64_t out_stride;
  int64_t x_stride;
  int64_t sequence;
  bool backward;

  int64_t items() const { return tokens; }
  int64_t grain() const { return 1 + 16384 / (heads * d_head + 1); }
};

// The tables, [positions, d_head / 2] each: cos and sin of position * theta^(-2 i / d_head),
// computed in binary64 by kernels/math/host64.h in this order and rounded once to binary32,
// canonical:
//   frequency = Pow64(theta, -(2 i) / d_head);  angle = position * frequency;  Cos64, Sin64.
// d_head is even and positive. On the calling thread.
void BuildRopeTable(double theta, int64_t d_head, int64_t positions, float* cos, float* sin);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ROPE_ROPE_H_
