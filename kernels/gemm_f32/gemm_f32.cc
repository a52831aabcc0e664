// SPDX-License-Identifier: Apache-2.0
//
// The f32 matrix product: blocking and threads. What is computed is fixed by gemm_f32.h; here is
// only where the operands lie meanwhile.
//
// For a block of k (256 of them, the contract's) the rows of a are packed once and stay in the
// third-level cache. Then blocks of b's columns are packed, one at a time, each small enough for a
// second-level cache, and multiplied with all of a's packed rows: a thread takes a panel of a into
// its first-level cache and runs along b's panels.
#include "kernels/gemm_f32/gemm_f32.h"

#include <algorithm>

#include "kernels/context.h"
#include "kernels/gemm_f32/gemm_f32_inner.h"
#include "kernels/scratch.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kRowsMax = 3072;     // of a, packed: 3 MiB
constexpr int64_t kColumnsMax = 4096;  // of c, while all blocks of k are added to them
constexpr int64_t kBlockMax = 576;     // columns of b, packed: 576 KiB

GemmTile TileOf(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return kGemmTileAvx2;
    case Isa::kAvx512:
      return kGemmTileAvx512;
    default:
      return kGemmTileNeon;
  }
}

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Element (row, column) of an operand.
const void* At(const GemmIn& in, int64_t row, int64_t column) {
  const int64_t at = in.transposed ? column * in.stride + row : row * in.stride + column;
  if (in.type == ElementType::kFloat32) return static_cast<const float*>(in.data) + at;
  return static_cast<const BFloat16*>(in.data) + at;
}

// The product over rows [i0, i0 + rows) and columns [j0, j0 + columns) of c, all of k.
class Part {
 public:
  Part(const Context& context, const GemmF32Args& args, int64_t i0, int64_t rows, int64_t j0,
       int64_t columns)
      : context_(context),
        args_(args),
        tile_(TileOf(context.kernels.isa)),
        i0_(i0),
        rows_(rows),
        j0_(j0),
        columns_(columns) {
    const int64_t depth = std::min(args.k, kDepth);
    const int64_t blocks = (columns + kBlockMax - 1) / kBlockMax;
    block_columns_ = RoundUp((columns + blocks - 1) / blocks, tile_.columns);
    packed_a_ = frame_.Get<float>(RoundUp(rows, tile_.rows) * depth);
    packed_b_ = frame_.Get<float>(block_columns_ * depth);
    const int64_t at = i0 * args.c.stride + j0;
    if (args.c.type == ElementType::kFloat32) {
      sums_ = static_cast<float*>(args.c.data) + at;
      sums_stride_ = args.c.stride;
    } else {
      out_ = static_cast<BFloat16*>(args.c.data) + at;
      sums_stride_ = columns;
      if (args.k > kDepth) sums_ = frame_.Get<float>(rows * columns);
    }
  }

  void Run() {
    for (int64_t k0 = 0; k0 < args_.k; k0 += kDepth) MultiplyBlock(k0);
  }

 private:
  void MultiplyBlock(int64_t k0) {
    const int64_t depth = std::min(kDepth, args_.k - k0);
    for (int64_t j = 0; j < columns_; j += block_columns_) {
      const int64_t columns = std::min(block_columns_, columns_ - j);
      Pack({.out = packed_a_,
            .in = At(args_.a, i0_, k0),
            .type = args_.a.type,
            .k_contiguous = !args_.a.transposed,
            .stride = args_.a.stride,
            .lanes = j == 0 ? rows_ : 0,  // packed already for the later columns
            .depth = depth,
            .width = tile_.rows},
           {.out = packed_b_,
            .in = At(args_.b, k0, j0_ + j),
            .type = args_.b.type,
            .k_contiguous = args_.b.transposed,
            .stride = args_.b.stride,
            .lanes = columns,
            .depth = depth,
            .width = tile_.columns});
      kernels::Run(context_, GemmF32TilesArgs{.sums = sums_ == nullptr ? nullptr : sums_ + j,
                                              .out = out_ == nullptr ? nullptr : out_ + j,
                                              .a = packed_a_,
                                              .b = packed_b_,
                                              .sums_stride = sums_stride_,
                                              .out_stride = args_.c.stride,
                                              .rows = rows_,
                                              .columns = columns,
                                              .depth = depth,
                                              .tile = tile_,
                                              .add = k0 > 0 || args_.accumulate,
                                              .last = k0 + depth == args_.k});
    }
  }

  // Both at once, so that the threads meet once.
  void Pack(const GemmF32PackArgs& a, const GemmF32PackArgs& b) {
    const int64_t a_items = a.lanes > 0 ? a.items() : 0;
    const int64_t grain = a_items > 0 ? std::min(a.grain(), b.grain()) : b.grain();
    context_.ParallelFor(a_items + b.items(), grain, [&](int64_t begin, int64_t end) {
      if (begin < a_items) context_.kernels.GemmF32Pack(a, {begin, std::min(end, a_items)});
      if (end > a_items) {
        context_.kernels.GemmF32Pack(b, {std::max(begin, a_items) - a_items, end - a_items});
      }
    });
  }

  ScratchFrame frame_;
  const Context& context_;
  const GemmF32Args& args_;
  const GemmTile tile_;
  const int64_t i0_;
  const int64_t rows_;
  const int64_t j0_;
  const int64_t columns_;
  int64_t block_columns_;  // of b, packed at a time
  float* packed_a_;
  float* packed_b_;
  float* sums_ = nullptr;
  int64_t sums_stride_;
  BFloat16* out_ = nullptr;  // null if c is binary32
};

}  // namespace

void GemmF32(const Context& context, const GemmF32Args& args) {
  if (args.k == 0 || context.kernels.isa == Isa::kReference) return GemmF32Reference(args);
  for (int64_t i = 0; i < args.m; i += kRowsMax) {
    for (int64_t j = 0; j < args.n; j += kColumnsMax) {
      Part(context, args, i, std::min(kRowsMax, args.m - i), j, std::min(kColumnsMax, args.n - j))
          .Run();
    }
  }
}

}  // namespace lockstep::kernels
