// SPDX-License-Identifier: Apache-2.0
//
// Attention forward over a tile backend A (attention_tiles.h). A strip of scores, one block of
// queries by all their keys, is in scratch as [blocks, 64, 64]; then weights and P·V block by
// block.
#ifndef LOCKSTEP_KERNELS_ATTENTION_ATTENTION_FORWARD_BODY_H_
#define LOCKSTEP_KERNELS_ATTENTION_ATTENTION_FORWARD_BODY_H_

#include "kernels/attention/attention_tiles.h"
#include "kernels/math/log.h"
#include "kernels/scratch.h"

namespace lockstep::kernels {
namespace {

template <class A>
class AttentionForwardWork {
 public:
  explicit AttentionForwardWork(const AttentionForwardArgs& args)
      : args_(args), shape_(args.shape), head_dim_(args.shape.head_dim) {
    const int64_t blocks = BlocksOf(shape_);
    const int64_t block = kAttentionBlock * head_dim_;
    keys_ = frame_.Get<float>(blocks * block);
    if (args.int8_pv) {
      values_i8_ = frame_.Get<int32_t>(blocks * block / 4);
      units_ = frame_.Get<float>(blocks);
      weights_i8_ = frame_.Get<int8_t>(kTile);
      row_units_ = frame_.Get<float>(kAttentionBlock);
    } else {
      values_ = frame_.Get<float>(blocks * block);
    }
    strip_ = frame_.Get<float>(blocks * kTile);
    queries_ = frame_.Get<float>(block);
    out_ = frame_.Get<float>(block);
    lanes_ = frame_.Get<float>(kAttentionBlock * kLanes);
    row_max_ = frame_.Get<float>(kAttentionBlock * A::kWidth);
    max_ = frame_.Get<float>(kAttentionBlock);
    sum_ = frame_.Get<float>(kAttentionBlock);
  }

  void Compute(int64_t item) {
    const ForwardItem at = ForwardItemOf(shape_, item);
    query_block_ = at.query_block;
    first_ = FirstBlock(shape_, query_block_);
    rows_ = BlockSize(shape_, query_block_);
    Pack(at);
    for (int64_t g = 0; g < GroupOf(shape_); ++g) {
      const int64_t head = at.kv_head * GroupOf(shape_) + g;
      Scores(at.batch, head);
      WeightsAndValues();
      StoreResults(at.batch, head);
    }
  }

 private:
  using F = typename A::F;
  using I = typename A::I;
  static constexpr int64_t kTile = kAttentionBlock * kAttentionBlock;

  // Keys and values of the blocks first_ .. query_block_ that are not there yet: items of one head
  // come with descending query blocks.
  void Pack(const ForwardItem& at) {
    const int64_t head = at.batch * shape_.kv_heads + at.kv_head;
    if (head != packed_head_) {
      packed_head_ = head;
      packed_ = query_block_ + 1;
    }
    const int64_t offset = at.batch * shape_.tokens * args_.stride + at.kv_head * head_dim_;
    for (; packed_ > first_; --packed_) {
      const int64_t block = packed_ - 1;
      const int64_t in = offset + block * kAttentionBlock * args_.stride;
      const int64_t size = BlockSize(shape_, block);
      PackTransposed<A>(args_.k + in, args_.stride, size, head_dim_, KeysOf(block));
      if (args_.int8_pv) {
        QuantizeValues(args_.v + in, size, block);
      } else {
        I largest = A::SetI(0);
        PackRows<A>(args_.v + in, args_.stride, size, head_dim_, ValuesOf(block), largest);
      }
    }
  }

  // A word of values_i8_ is four keys of one column.
  void QuantizeValues(const BFloat16* v, int64_t size, int64_t block) {
    I largest = A::SetI(0);
    for (int64_t j = 0; j < size; ++j) {
      for (int64_t d = 0; d < head_dim_; d += A::kWidth) {
        const F x = SnapV<A>(A::Load(v + j * args_.stride + d, All{}));
        largest = A::MaxI(largest, A::AsInt(A::Abs(x)));
      }
    }
    const float amax = FromBits(static_cast<uint32_t>(A::MaxLane(largest)));
    const bool usable = IsFinite(amax) && amax > 0.0f;
    units_[block] = IsFinite(amax) ? amax / 16129.0f : FromBits(0x7fc00000u);
    const F inverse = A::Set(usable ? 127.0f / amax : 0.0f);
    int32_t* out = ValuesI8Of(block);
    for (int64_t j = 0; j < kAttentionBlock; j += 4, out += head_dim_) {
      for (int64_t d = 0; d < head_dim_; d += A::kWidth) {
        I word = A::SetI(0);
        const auto put = [&](int64_t key, auto shift) {
          if (!usable || key >= size) return;
          const F x = SnapV<A>(A::Load(v + key * args_.stride + d, All{}));
          const I byte = A::AndI(A::ToInt(A::Mul(x, inverse)), A::SetI(0xff));
          word = A::OrI(word, A::template ShiftLeft<decltype(shift)::kBits>(byte));
        };
        put(j, Shift<0>{});
        put(j + 1, Shift<8>{});
        put(j + 2, Shift<16>{});
        put(j + 3, Shift<24>{});
        A::StoreI(out + d, word, All{});
      }
    }
  }
  template <int kShift>
  struct Shift {
    static constexpr int kBits = kShift;
  };

  // The strip of scores, -Inf where invisible, and the rows' largest.
  void Scores(int64_t batch, int64_t head) {
    const int64_t i = query_block_ * kAttentionBlock;
    PackScaledRows<A>(args_.q + (batch * shape_.tokens + i) * args_.stride + head * head_dim_,
                      args_.stride, rows_, head_dim_, ScaleOf(shape_), queries_);
    for (int64_t x = 0; x < rows_ * A::kWidth; ++x) row_max_[x] = kMinusInfinity;
    const Elements a = {queries_, head_dim_, 1};
    for (int64_t block = first_; block <= query_block_; ++block) {
      float* tile = TileOf(block);
      const auto product = [&](Range rows, int64_t columns) {
        Product<A>(a, KeysOf(block), kAttentionBlock, head_dim_, rows, Range{0, columns},
                   [&](int64_t r, int64_t n, F x) {
                     A::StoreRaw(tile + r * kAttentionBlock + n, x, All{});
                   });
      };
      if (block < query_block_) {
        product(Range{0, rows_}, kAttentionBlock);
      } else {  // the upper half of the rows sees the first half of the keys only
        constexpr int64_t kHalf = kAttentionBlock / 2;
        product(Range{0, Least(rows_, kHalf)}, kHalf);
        if (rows_ > kHalf) product(Range{kHalf, rows_}, kAttentionBlock);
      }
      if (HasInvisible(shape_, query_block_, block)) HideInvisible(block);
      RaiseRowMax(tile);
    }
    for (int64_t r = 0; r < rows_; ++r) {
      float largest = kMinusInfinity;
      for (int l = 0; l < A::kWidth; ++l) largest = Max(row_max_[r * A::kWidth + l], largest);
      max_[r] = largest;
    }
  }

  void HideInvisible(int64_t block) {
    for (int64_t r = 0; r < rows_; ++r) {
      const Visible visible = VisibleOf(shape_, query_block_ * kAttentionBlock + r, block);
      float* row = TileOf(block) + r * kAttentionBlock;
      for (int key = 0; key < kAttentionBlock; key += A::kWidth) {
        A::StoreRaw(
            row + key,
            A::Select(visible.Mask<A>(key), A::Load(row + key, All{}), A::Set(kMinusInfinity)),
            All{});
      }
    }
  }

  void RaiseRowMax(const float* tile) {
    for (int64_t r = 0; r < rows_; ++r) {
      F largest = A::Load(row_max_ + r * A::kWidth, All{});
      for (int key = 0; key < kAttentionBlock; key += A::kWidth) {
        largest = A::Max(A::Load(tile + r * kAttentionBlock + key, All{}), largest);
      }
      A::StoreRaw(row_max_ + r * A::kWidth, largest, All{});
    }
  }

  // Weights, their sums, and o. An invisible score of -Inf gives +0 in every row whose largest is
  // not -Inf; a row whose largest is -Inf is NaN as a whole.
  void WeightsAndValues() {
    SetZero(lanes_, kAttentionBlock * kLanes);
    SetZero(out_, kAttentionBlock * head_dim_);
    SetZero(sum_, kAttentionBlock);
    for (int64_t block = first_; block <= query_block_; ++block) {
      const bool new_run = block * kAttentionBlock % kRun == 0 && block > first_;
      if (new_run) EndRun();
      if (args_.int8_pv) {
        for (int64_t r = 0; r < rows_; ++r) WeightsI8(block, r);
        AddValuesI8(block);
      } else {
        for (int64_t r = 0; r < rows_; ++r) WeightsF32(block, r);
        AddValuesF32(block);
      }
    }
    EndRun();
  }

  // The totals of a run of 4096 keys, by the row order.
  void EndRun() {
    for (int64_t r = 0; r < rows_; ++r) sum_[r] = sum_[r] + FoldLanes<A>(lanes_ + r * kLanes);
    SetZero(lanes_, kAttentionBlock * kLanes);
  }

  // use(key, p) for the weights of a row in a block.
  template <class Use>
  void RowWeights(int64_t block, int64_t r, Use&& use) {
    constexpr int kRegisters = RowLanes<A>::kRegisters;
    const float* scores = TileOf(block) + r * kAttentionBlock;
    float* lanes = lanes_ + r * kLanes;
    const F largest = A::Set(max_[r]);
#pragma GCC unroll 8
    for (int l = 0; l < kRegisters; ++l) {
      F sum = A::Load(lanes + l * A::kWidth, All{});
#pragma GCC unroll 2
      for (int key = l * A::kWidth; key < kAttentionBlock; key += kLanes) {
        const F p = Weight<A>(A::Sub(A::Load(scores + key, All{}), largest));
        sum = A::Add(sum, p);
        use(key, p);
      }
      A::StoreRaw(lanes + l * A::kWidth, sum, All{});
    }
  }

  void WeightsI8(int64_t block, int64_t r) {
    F p[kAttentionBlock / A::kWidth];
    I top = A::SetI(0);
    RowWeights(block, r, [&](int key, F x) {
      p[key / A::kWidth] = x;
      top = A::MaxI(top, A::AsInt(x));
    });
    const float pmax = FromBits(static_cast<uint32_t>(A::MaxLane(top)));
    const F inverse = A::Set(pmax > 0.0f ? 127.0f / pmax : 0.0f);
    int8_t* out = weights_i8_ + r * kAttentionBlock;
#pragma GCC unroll 16
    for (int v = 0; v < kAttentionBlock / A::kWidth; ++v) {
      A::StoreI(out + v * A::kWidth, A::ToInt(A::Mul(p[v], inverse)), All{});
    }
    row_units_[r] = Snap(pmax * units_[block]);
  }

  void WeightsF32(int64_t block, int64_t r) {
    float* row = TileOf(block) + r * kAttentionBlock;
    RowWeights(block, r, [&](int key, F p) { A::StoreRaw(row + key, p, All{}); });
  }

  void AddValuesI8(int64_t block) {
    const auto add = [&](Range rows, int64_t groups) {
      DotProduct<A>(weights_i8_, ValuesI8Of(block), head_dim_, groups, rows, Range{0, head_dim_},
                    [&](int64_t r, int64_t d, I sum) {
                      float* o = out_ + r * head_dim_ + d;
                      const F unit = A::Set(row_units_[r]);
                      A::StoreRaw(o, A::Fma(A::ToFloat(sum), unit, A::Load(o, All{})), All{});
                    });
    };
    if (block < query_block_) {
      add(Range{0, rows_}, kAttentionBlock / 4);
    } else {  // integers: what is invisible is 0 and may be left out
      constexpr int64_t kHalf = kAttentionBlock / 2;
      add(Range{0, Least(rows_, kHalf)}, kHalf / 4);
      if (rows_ > kHalf) add(Range{kHalf, rows_}, kAttentionBlock / 4);
    }
  }

  void AddValuesF32(int64_t block) {
    const Elements p = {TileOf(block), kAttentionBlock, 1};
    Product<A>(p, ValuesOf(block), head_dim_, BlockSize(shape_, block), Range{0, rows_},
               Range{0, head_dim_}, [&](int64_t r, int64_t d, F acc) {
                 float* o = out_ + r * head_dim_ + d;
                 A::StoreRaw(o, A::Add(A::Load(o, All{}), acc), All{});
               });
  }

  void StoreResults(int64_t batch, int64_t head) {
    const int64_t i = query_block_ * kAttentionBlock;
    float* lse = args_.lse + (batch * shape_.query_heads + head) * shape_.tokens + i;
    BFloat16* out =
        args_.out + ((batch * shape_.tokens + i) * shape_.query_heads + head) * head_dim_;
    for (int64_t r = 0; r < rows_; ++r) {
      const F inverse = A::Set(1.0f / sum_[r]);
      for (int64_t d = 0; d < head_dim_; d += A::kWidth) {
        StoreV<A>(out + r * shape_.query_heads * head_dim_ + d,
                  A::Mul(A::Load(out_ + r * head_dim_ + d, All{}), inverse), All{});
      }
      Store(&lse[r], max_[r] + Log(sum_[r]));
    }
  }

  float* KeysOf(int64_t block) { return keys_ + block * kAttentionBlock * head_dim_; }
  float* ValuesOf(int64_t block) { return values_ + block * kAttentionBlock * head_dim_; }
  int32_t* ValuesI8Of(int64_t block) {
    return values_i8_ + block * kAttentionBlock / 4 * head_dim_;
  }
  float* TileOf(int64_t block) { return strip_ + (block - first_) * kTile; }

  static constexpr float kMinusInfinity = -__builtin_inff();

  const AttentionForwardArgs& args_;
  const AttentionShape& shape_;
  const int64_t head_dim_;
  int64_t query_block_ = 0;
  int64_t first_ = 0;  // active key block
  int64_t rows_ = 0;
  int64_t packed_head_ = -1;
  int64_t packed_ = 0;  // the first block of packed_head_ that is packed
  ScratchFrame frame_;
  float* keys_;                   // [blocks, Dh, 64]
  float* values_ = nullptr;       // [blocks, 64, Dh]
  int32_t* values_i8_ = nullptr;  // [blocks, 16, Dh] of four keys
  float* units_ = nullptr;        // [blocks]
  float* strip_;                  // [blocks, 64, 64]: scores, then weights
  float* queries_;                // [64, Dh]
  float* out_;                    // [64, Dh]
  float* lanes_;                  // [64, 32]
  float* row_max_;                // [64, kWidth]
  float* max_;                    // [64]
  float* sum_;                    // [64]
  int8_t* weights_i8_ = nullptr;  // [64, 64]
  float* row_units_ = nullptr;    // [64]
};

}  // namespace

template <class A>
void AttentionForwardBody(const AttentionForwardArgs& args, Range range) {
  AttentionForwardWork<A> work(args);
  for (int64_t item = range.begin; item < range.end; ++item) work.Compute(item);
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ATTENTION_ATTENTION_FORWARD_BODY_H_
