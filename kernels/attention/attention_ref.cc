// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of attention, forward and backward: the formulas of attention.h row by row.
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_inner.h"
#include "kernels/math/exp.h"
#include "kernels/math/log.h"
#include "kernels/scratch.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

float Snapped(BFloat16 x) { return Snap(ToFloat(x)); }

// s_ij and dp_ij: both operands snapped already, or by the way.
float Score(int64_t head_dim, const float* query, const BFloat16* key) {
  return Dot(
      head_dim, [&](int64_t d) { return query[d]; }, [&](int64_t d) { return Snapped(key[d]); });
}

// ---- Forward ----

// One block of v in int8.
struct QuantizedBlock {
  float unit;
  int8_t* at;  // [64, Dh]
};

QuantizedBlock Quantize(const AttentionForwardArgs& args, const BFloat16* v, int64_t block,
                        int8_t* at) {
  const int64_t head_dim = args.shape.head_dim;
  const int64_t begin = block * kAttentionBlock;
  const int64_t end = begin + BlockSize(args.shape, block);
  uint32_t amax_bits = 0;
  for (int64_t j = begin; j < end; ++j) {
    for (int64_t d = 0; d < head_dim; ++d) {
      const uint32_t bits = MagnitudeBits(Snapped(v[j * args.stride + d]));
      amax_bits = bits > amax_bits ? bits : amax_bits;
    }
  }
  const float amax = FromBits(amax_bits);
  const bool usable = IsFinite(amax) && amax > 0.0f;
  for (int64_t j = begin; j < end; ++j) {
    for (int64_t d = 0; d < head_dim; ++d) {
      const float x = Snapped(v[j * args.stride + d]);
      at[(j - begin) * head_dim + d] = static_cast<int8_t>(usable ? ToInt(x * (127.0f / amax)) : 0);
    }
  }
  const float unit = IsFinite(amax) ? amax / 16129.0f : FromBits(0x7fc00000u);
  return {unit, at};
}

class ForwardRow {
 public:
  ForwardRow(const AttentionForwardArgs& args, int64_t batch, int64_t head, int64_t i)
      : args_(args), shape_(args.shape), batch_(batch), head_(head), i_(i) {
    const int64_t kv_head = head / GroupOf(shape_);
    k_ = args.k + batch * shape_.tokens * args.stride + kv_head * shape_.head_dim;
    v_ = args.v + batch * shape_.tokens * args.stride + kv_head * shape_.head_dim;
    p_ = frame_.Get<float>(shape_.tokens + kAttentionBlock);
    o_ = frame_.Get<float>(shape_.head_dim);
    for (int64_t d = 0; d < shape_.head_dim; ++d) o_[d] = 0.0f;
  }

  // p, m and l.
  void Softmax() {
    float* query = frame_.Get<float>(shape_.head_dim);
    const BFloat16* q =
        args_.q + (batch_ * shape_.tokens + i_) * args_.stride + head_ * shape_.head_dim;
    for (int64_t d = 0; d < shape_.head_dim; ++d) query[d] = Snap(ToFloat(q[d]) * ScaleOf(shape_));
    for (int64_t j = 0; j < shape_.tokens; ++j) p_[j] = 0.0f;
    const int64_t first = FirstKey(shape_, i_);
    m_ = FromBits(0xff800000u);
    for (int64_t j = first; j <= i_; ++j) {
      p_[j] = Score(shape_.head_dim, query, k_ + j * args_.stride);
      m_ = Max(p_[j], m_);
    }
    for (int64_t j = first; j <= i_; ++j) p_[j] = Snap(Exp(p_[j] - m_));
    l_ = RowSum(i_ + 1, [&](int64_t j) { return p_[j]; });
  }

  void AddBlock(int64_t block, const QuantizedBlock& quantized) {
    const int64_t begin = block * kAttentionBlock;
    const int64_t end = begin + BlockSize(shape_, block);
    if (!args_.int8_pv) {
      for (int64_t d = 0; d < shape_.head_dim; ++d) {
        float acc = 0.0f;
        for (int64_t j = begin; j < end; ++j)
          acc = Fma(p_[j], Snapped(v_[j * args_.stride + d]), acc);
        o_[d] = o_[d] + acc;
      }
      return;
    }
    float pmax = 0.0f;
    for (int64_t j = begin; j < end; ++j) pmax = Max(p_[j], pmax);
    const float inverse = pmax > 0.0f ? 127.0f / pmax : 0.0f;
    for (int64_t d = 0; d < shape_.head_dim; ++d) {
      int32_t sum = 0;
      for (int64_t j = begin; j < end; ++j) {
        const int32_t weight = p_[j] == p_[j] ? ToInt(p_[j] * inverse) : 0;
        sum += weight * quantized.at[(j - begin) * shape_.head_dim + d];
      }
      o_[d] = Fma(static_cast<float>(sum), Snap(pmax * quantized.unit), o_[d]);
    }
  }

  void StoreResults() {
    BFloat16* out =
        args_.out + ((batch_ * shape_.tokens + i_) * shape_.query_heads + head_) * shape_.head_dim;
    for (int64_t d = 0; d < shape_.head_dim; ++d) Store(&out[d], o_[d] * (1.0f / l_));
    Store(&args_.lse[(batch_ * shape_.query_heads + head_) * shape_.tokens + i_], m_ + Log(l_));
  }

 private:
  const AttentionForwardArgs& args_;
  const AttentionShape& shape_;
  int64_t batch_;
  int64_t head_;
  int64_t i_;
  const BFloat16* k_;
  const BFloat16* v_;
  ScratchFrame frame_;
  float* p_;  // [T]
  float* o_;  // [Dh]
  float m_;
  float l_;
};

void ForwardOne(const AttentionForwardArgs& args, const ForwardItem& item) {
  const AttentionShape& shape = args.shape;
  const int64_t first = FirstBlock(shape, item.query_block);
  const int64_t count = item.query_block + 1 - first;
  ScratchFrame frame;
  QuantizedBlock* blocks = frame.Get<QuantizedBlock>(count);
  const BFloat16* v =
      args.v + item.batch * shape.tokens * args.stride + item.kv_head * shape.head_dim;
  for (int64_t b = 0; b < count; ++b) {
    blocks[b] = Quantize(args, v, first + b, frame.Get<int8_t>(kAttentionBlock * shape.head_dim));
  }
  const int64_t begin = item.query_block * kAttentionBlock;
  for (int64_t g = 0; g < GroupOf(shape); ++g) {
    for (int64_t i = begin; i < begin + BlockSize(shape, item.query_block); ++i) {
      ForwardRow row(args, item.batch, item.kv_head * GroupOf(shape) + g, i);
      row.Softmax();
      for (int64_t b = 0; b < count; ++b) row.AddBlock(first + b, blocks[b]);
      row.StoreResults();
    }
  }
}

// ---- Backward ----

class BackwardHead {
 public:
  BackwardHead(const AttentionBackwardArgs& args, int64_t batch, int64_t kv_head)
      : args_(args),
        shape_(args.shape),
        batch_(batch),
        kv_head_(kv_head),
        head_dim_(args.shape.head_dim) {
    const int64_t offset = batch * shape_.tokens * args.stride + kv_head * head_dim_;
    k_ = args.k + offset;
    v_ = args.v + offset;
    k_max_ = Largest(k_);
    v_max_ = Largest(v_);
    uint32_t dout_max = 0;
    for (int64_t h = FirstHead(); h < FirstHead() + GroupOf(shape_); ++h) {
      for (int64_t i = 0; i < shape_.tokens; ++i) {
        for (int64_t d = 0; d < head_dim_; ++d) {
          const uint32_t bits = MagnitudeBits(ToFloat(Gradient(h, i)[d]));
          dout_max = bits > dout_max ? bits : dout_max;
        }
      }
    }
    exponent_ = GradientExponent(dout_max);
    const int64_t elements = shape_.tokens * head_dim_;
    dk_ = Zeros(elements);
    dv_ = Zeros(elements);
    query_ = frame_.Get<float>(kAttentionBlock * head_dim_);
    do_ = frame_.Get<float>(kAttentionBlock * head_dim_);
    p_ = frame_.Get<float>(kAttentionBlock * shape_.tokens);
    ds_ = frame_.Get<float>(kAttentionBlock * shape_.tokens);
  }

  void Compute() {
    for (int64_t h = FirstHead(); h < FirstHead() + GroupOf(shape_); ++h) {
      for (int64_t block = 0; block < BlocksOf(shape_); ++block) AddQueryBlock(h, block);
    }
    for (int64_t j = 0; j < shape_.tokens; ++j) {
      const int64_t at =
          (batch_ * shape_.tokens + j) * args_.gradient_stride + kv_head_ * head_dim_;
      for (int64_t d = 0; d < head_dim_; ++d) {
        Store(&args_.dk[at + d], dk_[j * head_dim_ + d] * PowerOfTwo(exponent_));
        Store(&args_.dv[at + d], dv_[j * head_dim_ + d] * PowerOfTwo(exponent_));
      }
    }
  }

 private:
  int64_t FirstHead() const { return kv_head_ * GroupOf(shape_); }
  const BFloat16* Gradient(int64_t h, int64_t i) const {
    return args_.dout + ((batch_ * shape_.tokens + i) * shape_.query_heads + h) * head_dim_;
  }
  float* Zeros(int64_t count) {
    float* zeros = frame_.Get<float>(count);
    for (int64_t x = 0; x < count; ++x) zeros[x] = 0.0f;
    return zeros;
  }
  uint32_t Largest(const BFloat16* x) const {
    uint32_t largest = 0;
    for (int64_t j = 0; j < shape_.tokens; ++j) {
      for (int64_t d = 0; d < head_dim_; ++d) {
        const uint32_t bits = MagnitudeBits(Snapped(x[j * args_.stride + d]));
        largest = bits > largest ? bits : largest;
      }
    }
    return largest;
  }

  // Rows of p, ds, q' and do of one query block, its dq, and what it adds to dk and dv.
  void AddQueryBlock(int64_t h, int64_t block) {
    const int64_t begin = block * kAttentionBlock;
    const int64_t rows = BlockSize(shape_, block);
    for (int64_t r = 0; r < rows; ++r) Row(h, block, begin + r, r);
    for (int64_t j = FirstBlock(shape_, block) * kAttentionBlock; j < begin + rows; ++j) {
      for (int64_t d = 0; d < head_dim_; ++d) {
        float dv = 0.0f;
        float dk = 0.0f;
        for (int64_t r = 0; r < rows; ++r) {
          dv = Fma(p_[r * shape_.tokens + j], do_[r * head_dim_ + d], dv);
          dk = Fma(ds_[r * shape_.tokens + j], query_[r * head_dim_ + d], dk);
        }
        dv_[j * head_dim_ + d] = dv_[j * head_dim_ + d] + dv;
        dk_[j * head_dim_ + d] = dk_[j * head_dim_ + d] + dk;
      }
    }
  }

  void Row(int64_t h, int64_t block, int64_t i, int64_t r) {
    const BFloat16* q = args_.q + (batch_ * shape_.tokens + i) * args_.stride + h * head_dim_;
    float* query = query_ + r * head_dim_;
    float* gradient = do_ + r * head_dim_;
    uint32_t do_max = 0;
    for (int64_t d = 0; d < head_dim_; ++d) {
      query[d] = Snap(ToFloat(q[d]) * ScaleOf(shape_));
      gradient[d] = Snap(ToFloat(Gradient(h, i)[d]) * PowerOfTwo(-exponent_));
      do_max = MagnitudeBits(gradient[d]) > do_max ? MagnitudeBits(gradient[d]) : do_max;
    }
    const float lse = args_.lse[(batch_ * shape_.query_heads + h) * shape_.tokens + i];
    float* p = p_ + r * shape_.tokens;
    float* ds = ds_ + r * shape_.tokens;  // dp at first
    for (int64_t j = 0; j < shape_.tokens; ++j) p[j] = ds[j] = 0.0f;
    for (int64_t j = FirstKey(shape_, i); j <= i; ++j) {
      const float x = Score(head_dim_, query, k_ + j * args_.stride) - lse;
      p[j] = Snap(Exp(0.0f < x ? 0.0f : x));
      ds[j] = Score(head_dim_, gradient, v_ + j * args_.stride);
    }
    const float mean = RowDot(
        i + 1, [&](int64_t j) { return p[j]; }, [&](int64_t j) { return Snap(ds[j]); });
    for (int64_t j = FirstKey(shape_, i); j <= i; ++j) ds[j] = Snap(p[j] * (ds[j] - mean));

    FixedScale fixed = FixedScaleOf(shape_, do_max, v_max_, k_max_);
    fixed.finite = fixed.finite && IsFinite(lse) && IsFinite(mean);
    BFloat16* dq = args_.dq + (batch_ * shape_.tokens + i) * args_.gradient_stride + h * head_dim_;
    for (int64_t d = 0; d < head_dim_; ++d) {
      const float nan = FromBits(0x7fc00000u);
      Store(&dq[d], fixed.finite ? QueryGradient(FixedSum(ds, block, d, fixed.exponent),
                                                 fixed.exponent, ScaleOf(shape_), exponent_)
                                 : nan);
    }
  }

  // N of one element of dq.
  int64_t FixedSum(const float* ds, int64_t query_block, int64_t d, int fixed_exponent) const {
    int64_t sum = 0;
    for (int64_t block = FirstBlock(shape_, query_block); block <= query_block; ++block) {
      const int64_t begin = block * kAttentionBlock;
      float acc = 0.0f;
      for (int64_t j = begin; j < begin + BlockSize(shape_, block); ++j) {
        acc = Fma(ds[j], Snapped(k_[j * args_.stride + d]), acc);
      }
      const float x = Max(Min(acc * PowerOfTwo(fixed_exponent), kFixedLimit), -kFixedLimit);
      sum += Abs(x) < 0x1p23f ? ToInt(x) : static_cast<int64_t>(x);  // integers from 2^23 on
    }
    return sum;
  }

  const AttentionBackwardArgs& args_;
  const AttentionShape& shape_;
  int64_t batch_;
  int64_t kv_head_;
  int64_t head_dim_;
  const BFloat16* k_;
  const BFloat16* v_;
  uint32_t k_max_;
  uint32_t v_max_;
  int exponent_;  // E
  ScratchFrame frame_;
  float* dk_;     // [T, Dh]
  float* dv_;     // [T, Dh]
  float* query_;  // [64, Dh]
  float* do_;     // [64, Dh]
  float* p_;      // [64, T]
  float* ds_;     // [64, T]
};

}  // namespace

void AttentionForwardReference(const AttentionForwardArgs& args, Range range) {
  for (int64_t item = range.begin; item < range.end; ++item) {
    ForwardOne(args, ForwardItemOf(args.shape, item));
  }
}

void AttentionBackwardReference(const AttentionBackwardArgs& args, Range range) {
  for (int64_t item = range.begin; item < range.end; ++item) {
    BackwardHead(args, item / args.shape.kv_heads, item % args.shape.kv_heads).Compute();
  }
}

}  // namespace lockstep::kernels
