// SPDX-License-Identifier: Apache-2.0
//
// What the scalar definition of attention and its vector form share: positions, exponents, the
// query gradient's scale. Everything on one number; the formulas are in attention.h.
#ifndef LOCKSTEP_KERNELS_ATTENTION_ATTENTION_INNER_H_
#define LOCKSTEP_KERNELS_ATTENTION_ATTENTION_INNER_H_

#include "kernels/attention/attention.h"
#include "kernels/numeric.h"

namespace lockstep::kernels {

constexpr float kFixedLimit = 0x1p50f;

static inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t Most(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t BlocksOf(const AttentionShape& shape) {
  return (shape.tokens + kAttentionBlock - 1) / kAttentionBlock;
}
static inline int64_t GroupOf(const AttentionShape& shape) {
  return shape.query_heads / shape.kv_heads;
}
// The first key that query i sees.
static inline int64_t FirstKey(const AttentionShape& shape, int64_t i) {
  return shape.window > 0 ? Most(0, i - shape.window + 1) : 0;
}
// The first active key block of a query block; the last is the query block's own.
static inline int64_t FirstBlock(const AttentionShape& shape, int64_t query_block) {
  return FirstKey(shape, query_block * kAttentionBlock) / kAttentionBlock;
}
// Positions of a block below T.
static inline int64_t BlockSize(const AttentionShape& shape, int64_t block) {
  return Least(kAttentionBlock, shape.tokens - block * kAttentionBlock);
}
// Which block of queries or which head an item of the forward is: descending blocks in each head.
struct ForwardItem {
  int64_t batch;
  int64_t kv_head;
  int64_t query_block;
};
static inline ForwardItem ForwardItemOf(const AttentionShape& shape, int64_t item) {
  const int64_t blocks = BlocksOf(shape);
  const int64_t head = item / blocks;
  return {head / shape.kv_heads, head % shape.kv_heads, blocks - 1 - item % blocks};
}

static inline float ScaleOf(const AttentionShape& shape) {
  return Rsqrt(static_cast<float>(shape.head_dim));
}

static inline uint32_t MagnitudeBits(float x) { return Bits(x) & 0x7fffffffu; }
static inline bool IsFinite(float x) { return MagnitudeBits(x) < 0x7f800000u; }
static inline int Exponent(uint32_t magnitude_bits) {
  return static_cast<int>(magnitude_bits >> 23) - 127;
}
// 2^n for n in -126 .. 127.
static inline float PowerOfTwo(int n) { return FromBits(static_cast<uint32_t>(n + 127) << 23); }

// E of the largest |dout| (its bits).
static inline int GradientExponent(uint32_t dout_max) {
  const int exponent = Exponent(dout_max);
  return exponent < -125 ? -125 : exponent > 126 ? 126 : exponent;
}

// e and whether the row is finite, from the bits of the largest magnitudes.
struct FixedScale {
  int exponent;
  bool finite;
};
static inline FixedScale FixedScaleOf(const AttentionShape& shape, uint32_t do_max, uint32_t v_max,
                                      uint32_t k_max) {
  int dim_log = 0;  // rounded up
  while ((int64_t{1} << dim_log) < shape.head_dim) ++dim_log;
  const int beta = Exponent(do_max) + Exponent(v_max) + Exponent(k_max) + dim_log + 4;
  const bool finite = do_max < 0x7f800000u && v_max < 0x7f800000u && k_max < 0x7f800000u;
  if (!finite || beta > 127) return {0, false};
  return {46 - beta < 124 ? 46 - beta : 124, true};
}

// One element of dq from N.
static inline float QueryGradient(int64_t sum, int fixed_exponent, float scale,
                                  int gradient_exponent) {
  const float x = static_cast<float>(sum) * PowerOfTwo(-fixed_exponent);
  return Canon(x * scale) * PowerOfTwo(gradient_exponent);
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ATTENTION_ATTENTION_INNER_H_
