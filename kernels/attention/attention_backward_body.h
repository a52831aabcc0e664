// SPDX-License-Identifier: Apache-2.0
//
// Attention backward over a tile backend A (attention_tiles.h). For each block of queries two
// strips, weights and their gradients by all keys, are in scratch as [blocks, 64, 64]: the first
// pass over the key blocks fills them and adds to dv, the second, with D known, adds to dk and dq.
#ifndef LOCKSTEP_KERNELS_ATTENTION_ATTENTION_BACKWARD_BODY_H_
#define LOCKSTEP_KERNELS_ATTENTION_ATTENTION_BACKWARD_BODY_H_

#include "kernels/attention/attention_tiles.h"
#include "kernels/scratch.h"

namespace lockstep::kernels {
namespace {

template <class A>
class AttentionBackwardWork {
 public:
  explicit AttentionBackwardWork(const AttentionBackwardArgs& args)
      : args_(args), shape_(args.shape), head_dim_(args.shape.head_dim) {
    const int64_t blocks = BlocksOf(shape_);
    const int64_t block = kAttentionBlock * head_dim_;
    keys_t_ = frame_.Get<float>(blocks * block);
    keys_ = frame_.Get<float>(blocks * block);
    values_t_ = frame_.Get<float>(blocks * block);
    dk_ = frame_.Get<float>(blocks * block);
    dv_ = frame_.Get<float>(blocks * block);
    weights_ = frame_.Get<float>(blocks * kTile);
    gradients_ = frame_.Get<float>(blocks * kTile);
    queries_ = frame_.Get<float>(block);
    do_ = frame_.Get<float>(block);
    dq_ = frame_.Get<int64_t>(block);
    lanes_ = frame_.Get<float>(kAttentionBlock * kLanes);
    mean_ = frame_.Get<float>(kAttentionBlock);
    fixed_ = frame_.Get<FixedScale>(kAttentionBlock);
  }

  void Compute(int64_t item) {
    batch_ = item / shape_.kv_heads;
    kv_head_ = item % shape_.kv_heads;
    Pack();
    exponent_ = GradientExponent(LargestGradient());
    SetZero(dk_, BlocksOf(shape_) * kAttentionBlock * head_dim_);
    SetZero(dv_, BlocksOf(shape_) * kAttentionBlock * head_dim_);
    for (int64_t g = 0; g < GroupOf(shape_); ++g) {
      for (int64_t block = 0; block < BlocksOf(shape_); ++block) {
        QueryBlock(kv_head_ * GroupOf(shape_) + g, block);
      }
    }
    StoreKeyValueGradients();
  }

 private:
  using F = typename A::F;
  using I = typename A::I;
  static constexpr int64_t kTile = kAttentionBlock * kAttentionBlock;

  void Pack() {
    const int64_t offset = batch_ * shape_.tokens * args_.stride + kv_head_ * head_dim_;
    I k_max = A::SetI(0);
    I v_max = A::SetI(0);
    for (int64_t block = 0; block < BlocksOf(shape_); ++block) {
      const int64_t in = offset + block * kAttentionBlock * args_.stride;
      const int64_t size = BlockSize(shape_, block);
      PackTransposed<A>(args_.k + in, args_.stride, size, head_dim_, BlockOf(keys_t_, block));
      PackTransposed<A>(args_.v + in, args_.stride, size, head_dim_, BlockOf(values_t_, block));
      PackRows<A>(args_.k + in, args_.stride, size, head_dim_, BlockOf(keys_, block), k_max);
      PackRows<A>(args_.v + in, args_.stride, size, head_dim_, do_, v_max);
    }
    k_max_ = static_cast<uint32_t>(A::MaxLane(k_max));
    v_max_ = static_cast<uint32_t>(A::MaxLane(v_max));
  }

  uint32_t LargestGradient() const {
    const int64_t width = shape_.query_heads * head_dim_;
    I largest = A::SetI(0);
    for (int64_t i = 0; i < shape_.tokens; ++i) {
      const BFloat16* row = args_.dout + (batch_ * shape_.tokens + i) * width +
                            kv_head_ * GroupOf(shape_) * head_dim_;
      for (int64_t d = 0; d < GroupOf(shape_) * head_dim_; d += A::kWidth) {
        largest = A::MaxI(largest, A::AsInt(A::Abs(A::Load(row + d, All{}))));
      }
    }
    return static_cast<uint32_t>(A::MaxLane(largest));
  }

  void QueryBlock(int64_t head, int64_t block) {
    head_ = head;
    query_block_ = block;
    first_ = FirstBlock(shape_, block);
    rows_ = BlockSize(shape_, block);
    const int64_t token = batch_ * shape_.tokens + block * kAttentionBlock;
    PackScaledRows<A>(args_.q + token * args_.stride + head * head_dim_, args_.stride, rows_,
                      head_dim_, ScaleOf(shape_), queries_);
    const int64_t width = shape_.query_heads * head_dim_;
    PackScaledRows<A>(args_.dout + token * width + head * head_dim_, width, rows_, head_dim_,
                      PowerOfTwo(-exponent_), do_);
    lse_ =
        args_.lse + (batch_ * shape_.query_heads + head) * shape_.tokens + block * kAttentionBlock;
    FirstPass();
    for (int64_t r = 0; r < rows_; ++r) fixed_[r] = RowScale(r);
    SecondPass();
    StoreQueryGradients();
  }

  // p, dp, dv and D.
  void FirstPass() {
    SetZero(lanes_, kAttentionBlock * kLanes);
    SetZero(mean_, kAttentionBlock);
    for (int64_t block = first_; block <= query_block_; ++block) {
      const bool new_run = block * kAttentionBlock % kRun == 0 && block > first_;
      if (new_run) EndRun();
      float* p = TileOf(weights_, block);
      float* dp = TileOf(gradients_, block);
      RowsByKeys(block, queries_, keys_t_, p);
      RowsByKeys(block, do_, values_t_, dp);
      const bool hide = HasInvisible(shape_, query_block_, block);
      for (int64_t r = 0; r < rows_; ++r) WeightRow(block, r, hide);
      AddKeyGradients(block, p, do_, dv_);
    }
    EndRun();
  }

  // out [rows, 64] = rows · keys of the block, but for the quarter that nobody sees.
  void RowsByKeys(int64_t block, const float* rows, const float* keys, float* out) {
    const auto product = [&](Range range, int64_t columns) {
      Product<A>(Elements{rows, head_dim_, 1}, BlockOf(keys, block), kAttentionBlock, head_dim_,
                 range, Range{0, columns}, [&](int64_t r, int64_t n, F x) {
                   A::StoreRaw(out + r * kAttentionBlock + n, x, All{});
                 });
    };
    constexpr int64_t kHalf = kAttentionBlock / 2;
    if (block < query_block_ || rows_ <= kHalf) {
      product(Range{0, rows_}, kAttentionBlock);
    } else {
      product(Range{0, kHalf}, kHalf);
      product(Range{kHalf, rows_}, kAttentionBlock);
    }
  }

  void WeightRow(int64_t block, int64_t r, bool hide) {
    const Visible visible = VisibleOf(shape_, query_block_ * kAttentionBlock + r, block);
    float* p = TileOf(weights_, block) + r * kAttentionBlock;
    float* dp = TileOf(gradients_, block) + r * kAttentionBlock;
    float* lanes = lanes_ + r * kLanes;
    const F lse = A::Set(lse_[r]);
    const F zero = A::Set(0.0f);
#pragma GCC unroll 8
    for (int l = 0; l < RowLanes<A>::kRegisters; ++l) {
      F sum = A::Load(lanes + l * A::kWidth, All{});
#pragma GCC unroll 2
      for (int key = l * A::kWidth; key < kAttentionBlock; key += kLanes) {
        const F x = A::Sub(A::Load(p + key, All{}), lse);
        F weight = Weight<A>(A::Min(zero, x));
        F gradient = A::Load(dp + key, All{});
        if (hide) {
          const typename A::M mask = visible.Mask<A>(key);
          weight = A::Select(mask, weight, zero);
          gradient = A::Select(mask, gradient, zero);
          A::StoreRaw(dp + key, gradient, All{});
        }
        A::StoreRaw(p + key, weight, All{});
        sum = A::Fma(weight, SnapV<A>(gradient), sum);
      }
      A::StoreRaw(lanes + l * A::kWidth, sum, All{});
    }
  }

  void EndRun() {
    for (int64_t r = 0; r < rows_; ++r) mean_[r] = mean_[r] + FoldLanes<A>(lanes_ + r * kLanes);
    SetZero(lanes_, kAttentionBlock * kLanes);
  }

  // sums [keys of the block, Dh] += weightsᵀ · rows.
  void AddKeyGradients(int64_t block, const float* weights, const float* rows, float* sums) {
    float* out = BlockOf(sums, block);
    Product<A>(Elements{weights, 1, kAttentionBlock}, rows, head_dim_, rows_,
               Range{0, BlockSize(shape_, block)}, Range{0, head_dim_},
               [&](int64_t j, int64_t d, F acc) {
                 float* c = out + j * head_dim_ + d;
                 A::StoreRaw(c, A::Add(A::Load(c, All{}), acc), All{});
               });
  }

  FixedScale RowScale(int64_t r) const {
    I largest = A::SetI(0);
    for (int64_t d = 0; d < head_dim_; d += A::kWidth) {
      largest = A::MaxI(largest, A::AsInt(A::Abs(A::Load(do_ + r * head_dim_ + d, All{}))));
    }
    FixedScale scale =
        FixedScaleOf(shape_, static_cast<uint32_t>(A::MaxLane(largest)), v_max_, k_max_);
    scale.finite = scale.finite && IsFinite(lse_[r]) && IsFinite(mean_[r]);
    return scale;
  }

  // ds, dk and dq.
  void SecondPass() {
    __builtin_memset(dq_, 0, static_cast<size_t>(kAttentionBlock * head_dim_) * sizeof(*dq_));
    for (int64_t block = first_; block <= query_block_; ++block) {
      float* ds = TileOf(gradients_, block);
      const bool hide = HasInvisible(shape_, query_block_, block);
      for (int64_t r = 0; r < rows_; ++r) GradientRow(block, r, hide);
      AddKeyGradients(block, ds, queries_, dk_);
      AddQueryGradients(block, ds);
    }
  }

  void GradientRow(int64_t block, int64_t r, bool hide) {
    const Visible visible = VisibleOf(shape_, query_block_ * kAttentionBlock + r, block);
    const float* p = TileOf(weights_, block) + r * kAttentionBlock;
    float* ds = TileOf(gradients_, block) + r * kAttentionBlock;
    const F mean = A::Set(mean_[r]);
#pragma GCC unroll 4
    for (int key = 0; key < kAttentionBlock; key += A::kWidth) {
      const F centred = A::Sub(A::Load(ds + key, All{}), mean);
      F x = SnapV<A>(A::Mul(A::Load(p + key, All{}), centred));
      if (hide) x = A::Select(visible.Mask<A>(key), x, A::Set(0.0f));
      A::StoreRaw(ds + key, x, All{});
    }
  }

  void AddQueryGradients(int64_t block, const float* ds) {
    Product<A>(Elements{ds, kAttentionBlock, 1}, BlockOf(keys_, block), head_dim_,
               BlockSize(shape_, block), Range{0, rows_}, Range{0, head_dim_},
               [&](int64_t r, int64_t d, F acc) {
                 const F x = A::Mul(acc, A::Set(PowerOfTwo(fixed_[r].exponent)));
                 const F clamped = A::Max(A::Min(x, A::Set(kFixedLimit)), A::Set(-kFixedLimit));
                 A::AddRounded(dq_ + r * head_dim_ + d, clamped);
               });
  }

  void StoreQueryGradients() {
    const int64_t token = batch_ * shape_.tokens + query_block_ * kAttentionBlock;
    for (int64_t r = 0; r < rows_; ++r) {
      BFloat16* out = args_.dq + (token + r) * args_.gradient_stride + head_ * head_dim_;
      for (int64_t d = 0; d < head_dim_; ++d) {
        const float nan = FromBits(0x7fc00000u);
        Store(&out[d], fixed_[r].finite ? QueryGradient(dq_[r * head_dim_ + d], fixed_[r].exponent,
                                                        ScaleOf(shape_), exponent_)
                                        : nan);
      }
    }
  }

  void StoreKeyValueGradients() {
    const F scale = A::Set(PowerOfTwo(exponent_));
    for (int64_t j = 0; j < shape_.tokens; ++j) {
      const int64_t at =
          (batch_ * shape_.tokens + j) * args_.gradient_stride + kv_head_ * head_dim_;
      for (int64_t d = 0; d < head_dim_; d += A::kWidth) {
        const int64_t from = j * head_dim_ + d;
        StoreV<A>(args_.dk + at + d, A::Mul(A::Load(dk_ + from, All{}), scale), All{});
        StoreV<A>(args_.dv + at + d, A::Mul(A::Load(dv_ + from, All{}), scale), All{});
      }
    }
  }

  template <class T>
  T* BlockOf(T* all, int64_t block) const {
    return all + block * kAttentionBlock * head_dim_;
  }
  float* TileOf(float* strip, int64_t block) const { return strip + (block - first_) * kTile; }

  const AttentionBackwardArgs& args_;
  const AttentionShape& shape_;
  const int64_t head_dim_;
  int64_t batch_ = 0;
  int64_t kv_head_ = 0;
  int64_t head_ = 0;
  int64_t query_block_ = 0;
  int64_t first_ = 0;  // active key block
  int64_t rows_ = 0;
  int exponent_ = 0;  // E
  uint32_t k_max_ = 0;
  uint32_t v_max_ = 0;
  const float* lse_ = nullptr;  // of the query block
  ScratchFrame frame_;
  float* keys_t_;      // [blocks, Dh, 64]
  float* keys_;        // [blocks, 64, Dh]
  float* values_t_;    // [blocks, Dh, 64]
  float* dk_;          // [blocks, 64, Dh]
  float* dv_;          // [blocks, 64, Dh]
  float* weights_;     // [blocks, 64, 64]: s, then p
  float* gradients_;   // [blocks, 64, 64]: dp, then ds
  float* queries_;     // [64, Dh]: q'
  float* do_;          // [64, Dh]
  int64_t* dq_;        // [64, Dh]: N
  float* lanes_;       // [64, 32]
  float* mean_;        // [64]: D
  FixedScale* fixed_;  // [64]
};

}  // namespace

template <class A>
void AttentionBackwardBody(const AttentionBackwardArgs& args, Range range) {
  AttentionBackwardWork<A> work(args);
  for (int64_t item = range.begin; item < range.end; ++item) work.Compute(item);
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ATTENTION_ATTENTION_BACKWARD_BODY_H_
