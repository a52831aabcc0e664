// SPDX-License-Identifier: Apache-2.0
//
// The f32 matrix product: blocking and threads. What is computed is fixed by gemm_f32.h; here is
// only where the operands lie meanwhile, and who does what.
//
// c is cut into parts, each computed by one thread from operands that it packs for itself: threads
// never wait for each other, and packed data never moves between cores. For a block of k (256 of
// them, the contract's) the part's rows of a are packed once. Then blocks of b's columns are
// packed, one at a time, each small enough for the second-level cache, and multiplied with all
// packed rows of a: four rows of a lie in the first-level cache while b's block passes by.
#include "kernels/gemm_f32/gemm_f32.h"

#include <algorithm>

#include "kernels/context.h"
#include "kernels/gemm_f32/gemm_f32_inner.h"
#include "kernels/scratch.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kPartRowsMax = 1024;     // a packed: 1 MiB
constexpr int64_t kPartColumnsMax = 4096;  // a bf16 part's sums: 8 MiB
constexpr int64_t kBlockColumnsMax = 576;  // b packed: 576 KiB
// Products that are worth a thread's wake-up.
constexpr int64_t kGrain = 500000;
// Packing a row or column of a part takes the time of so many more columns or rows.
constexpr int64_t kPackingCost = 12;

int64_t CeilDiv(int64_t n, int64_t d) { return (n + d - 1) / d; }
int64_t RoundUp(int64_t n, int64_t multiple) { return CeilDiv(n, multiple) * multiple; }

int64_t TileColumns(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return kGemmTileColumnsAvx2;
    case Isa::kAvx512:
      return kGemmTileColumnsAvx512;
    default:
      return kGemmTileColumnsNeon;
  }
}

// An operand's elements from (row, column) on.
ConstElements From(const GemmIn& in, int64_t row, int64_t column) {
  return From(in.elements, in.transposed ? column * in.stride + row : row * in.stride + column);
}

// A rectangle of c.
struct Part {
  int64_t i;
  int64_t rows;
  int64_t j;
  int64_t columns;
};

// The size of the parts of an m x n result: equally many for each thread, and such that the
// threads, as a grid of rows and columns, pack little.
Part PartSize(int64_t m, int64_t n, int64_t threads) {
  Part best = {};
  int64_t best_cost = 0;
  for (int64_t down = threads; down > 0; --down) {
    if (threads % down != 0) continue;
    const int64_t rows = RoundUp(CeilDiv(m, down), kGemmTileRows);
    const int64_t columns = RoundUp(CeilDiv(n, threads / down), 16);
    const int64_t cost = rows * columns + kPackingCost * (rows + columns);
    if (best_cost == 0 || cost < best_cost) {
      best_cost = cost;
      best.rows = RoundUp(CeilDiv(rows, CeilDiv(rows, kPartRowsMax)), kGemmTileRows);
      best.columns = RoundUp(CeilDiv(columns, CeilDiv(columns, kPartColumnsMax)), 16);
    }
  }
  return best;
}

// Computes one part on the calling thread.
class PartProduct {
 public:
  PartProduct(const KernelTable& kernels, const GemmF32Args& args, const Part& part)
      : kernels_(kernels), args_(args), part_(part), tile_columns_(TileColumns(kernels.isa)) {
    const int64_t depth = std::min(args.k, kDepth);
    const int64_t blocks = CeilDiv(part.columns, kBlockColumnsMax);
    block_columns_ = RoundUp(CeilDiv(part.columns, blocks), tile_columns_);
    packed_a_ = frame_.Get<float>(RoundUp(part.rows, kGemmTileRows) * depth);
    packed_b_ = frame_.Get<float>(block_columns_ * depth);
    const int64_t at = part.i * args.c.stride + part.j;
    if (args.c.elements.kind == ElementKind::kFloat32) {
      sums_ = static_cast<float*>(args.c.elements.data) + at;
      sums_stride_ = args.c.stride;
    } else {
      out_ = static_cast<BFloat16*>(args.c.elements.data) + at;
      sums_stride_ = part.columns;
      if (args.k > kDepth) sums_ = frame_.Get<float>(part.rows * part.columns);
    }
  }

  void Run() {
    for (int64_t k = 0; k < args_.k; k += kDepth) {
      const int64_t depth = std::min(kDepth, args_.k - k);
      PackA(k, depth);
      for (int64_t j = 0; j < part_.columns; j += block_columns_) {
        const int64_t columns = std::min(block_columns_, part_.columns - j);
        PackB(k, depth, j, columns);
        Multiply(k, depth, j, columns);
      }
    }
  }

 private:
  void PackA(int64_t k, int64_t depth) {
    const GemmF32PackArgs pack = {.out = packed_a_,
                                  .in = From(args_.a, part_.i, k),
                                  .k_contiguous = !args_.a.transposed,
                                  .stride = args_.a.stride,
                                  .lanes = part_.rows,
                                  .depth = depth,
                                  .width = kGemmTileRows};
    kernels_.GemmF32Pack(pack, {0, pack.items()});
  }
  void PackB(int64_t k, int64_t depth, int64_t j, int64_t columns) {
    const GemmF32PackArgs pack = {.out = packed_b_,
                                  .in = From(args_.b, k, part_.j + j),
                                  .k_contiguous = args_.b.transposed,
                                  .stride = args_.b.stride,
                                  .lanes = columns,
                                  .depth = depth,
                                  .width = tile_columns_};
    kernels_.GemmF32Pack(pack, {0, pack.items()});
  }
  void Multiply(int64_t k, int64_t depth, int64_t j, int64_t columns) {
    const GemmF32TilesArgs tiles = {.sums = sums_ == nullptr ? nullptr : sums_ + j,
                                    .out = out_ == nullptr ? nullptr : out_ + j,
                                    .a = packed_a_,
                                    .b = packed_b_,
                                    .sums_stride = sums_stride_,
                                    .out_stride = args_.c.stride,
                                    .rows = part_.rows,
                                    .columns = columns,
                                    .depth = depth,
                                    .add = k > 0 || args_.accumulate,
                                    .last = k + depth == args_.k};
    kernels_.GemmF32Tiles(tiles, {0, tiles.items()});
  }

  ScratchFrame frame_;
  const KernelTable& kernels_;
  const GemmF32Args& args_;
  const Part part_;
  const int64_t tile_columns_;
  int64_t block_columns_;  // of b, packed at a time
  float* packed_a_;
  float* packed_b_;
  float* sums_ = nullptr;  // null if nothing has to be kept between blocks of k
  int64_t sums_stride_;
  BFloat16* out_ = nullptr;  // null if c is binary32
};

}  // namespace

void GemmF32(const Context& context, const GemmF32Args& args) {
  if (args.m == 0 || args.n == 0) return;
  if (args.k == 0 || context.kernels.isa == Isa::kReference) return GemmF32Reference(args);
  const Part size = PartSize(args.m, args.n, context.pool.threads());
  const int64_t across = CeilDiv(args.n, size.columns);
  const int64_t parts = CeilDiv(args.m, size.rows) * across;
  const int64_t products = size.rows * size.columns * args.k;
  context.ParallelFor(parts, CeilDiv(kGrain, products), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t i = p / across * size.rows;
      const int64_t j = p % across * size.columns;
      PartProduct(context.kernels, args,
                  {.i = i,
                   .rows = std::min(size.rows, args.m - i),
                   .j = j,
                   .columns = std::min(size.columns, args.n - j)})
          .Run();
    }
  });
}

}  // namespace lockstep::kernels
