// SPDX-License-Identifier: Apache-2.0
//
// The driver of the int8 matrix product. A is packed by all threads, in blocks that fit the shared
// cache (or by each for itself, if it is small). Then each thread takes chunks of B's columns,
// packs one into a buffer of its own that stays in its own cache, and multiplies the block of A
// with it. The depth is not cut, so a tile of the result is finished in registers and can be
// dequantised there.
#include "kernels/gemm_i8/gemm_i8.h"

#include <algorithm>

#include "kernels/context.h"
#include "kernels/gemm_i8/gemm_i8_inner.h"
#include "kernels/scratch.h"

namespace lockstep::kernels {
namespace {

// Packed bytes of a block of A, and of a chunk of B.
constexpr int64_t kBlockBytes = int64_t{8} << 20;
constexpr int64_t kChunkBytes = int64_t{384} << 10;
// A block of A has at least so many rows, however deep, and so has a part of it that is multiplied
// apart from the rest: B is packed again for each, which costs little then.
constexpr int64_t kBlockRowsMin = 256;
// Pieces of work for each thread, so that all finish at about the same time.
constexpr int64_t kPiecesPerThread = 8;
// A so small (packed bytes) that each thread packs it for itself, if it has so many columns of B to
// multiply it with: that is sooner done than fetching what another core has packed.
constexpr int64_t kOwnBlockBytes = int64_t{512} << 10;
constexpr int64_t kOwnColumnsMin = 256;

int64_t Quotient(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }
int64_t RoundUp(int64_t x, int64_t unit) { return Quotient(x, unit) * unit; }

// Of a vector instruction set.
GemmI8Tile TileOf(Isa isa) {
  if (isa == Isa::kAvx512) return kGemmI8TileAvx512;
  if (isa == Isa::kAvx2) return kGemmI8TileAvx2;
  return kGemmI8TileNeon;
}

// Bytes from panel to panel: a whole block of groups may be written at the end, and one vector
// beyond it.
int64_t PitchOf(int64_t width, int64_t groups) {
  return RoundUp(RoundUp(groups, kGemmI8GroupBlock) * width * 4 + 64, 64);
}

// How the work is cut, which no result depends on. Lines are whole tiles but for the last.
struct Cut {
  int64_t block_rows;     // of A that are packed together
  int64_t part_rows;      // of a block that are multiplied in one piece
  int64_t chunk_columns;  // of B
  bool own_a;             // each thread packs A for itself: one block, one chunk a thread
};

Cut CutOf(const GemmI8Args& args, const GemmI8Tile& tile, int64_t groups, int64_t threads) {
  const int64_t pieces = threads == 1 ? 1 : kPiecesPerThread * threads;
  const int64_t fitting_rows =
      std::max(kBlockBytes / PitchOf(tile.rows, groups) * tile.rows, kBlockRowsMin);
  const int64_t blocks = Quotient(args.m, fitting_rows);
  const int64_t block_rows = RoundUp(Quotient(args.m, blocks), tile.rows);

  const int64_t b_panels = Quotient(args.n, tile.columns);
  if (threads > 1 && args.n >= threads * kOwnColumnsMin &&
      Quotient(args.m, tile.rows) * PitchOf(tile.rows, groups) <= kOwnBlockBytes) {
    const int64_t rows = RoundUp(args.m, tile.rows);
    return {rows, rows, Quotient(b_panels, threads) * tile.columns, true};
  }
  const int64_t fitting_panels = std::max<int64_t>(1, kChunkBytes / PitchOf(tile.columns, groups));
  const int64_t chunks = std::max(Quotient(b_panels, fitting_panels), std::min(pieces, b_panels));
  const int64_t chunk_columns = Quotient(b_panels, chunks) * tile.columns;

  // Where B has too few columns for all threads, A is cut as well.
  const int64_t parts = Quotient(pieces, chunks);
  const int64_t part_rows =
      RoundUp(std::max(Quotient(std::min(block_rows, args.m), parts), kBlockRowsMin), tile.rows);
  return {block_rows, part_rows, chunk_columns, false};
}

// How rows m to m + rows of A are packed.
GemmI8PackArgs PackOfA(const GemmI8Args& args, const GemmI8Tile& tile, int64_t m, int64_t rows,
                       int64_t pitch, std::byte* panels) {
  return {.panels = panels,
          .corrections = nullptr,
          .pitch = pitch,
          .source = args.a + m * (args.transpose_a ? 1 : args.lda),
          .ld = args.lda,
          .lines_contiguous = args.transpose_a,
          .is_a = true,
          .width = tile.rows,
          .lines = rows,
          .k = args.k};
}

// One block of A against all of B. The block is packed, or each thread packs it for itself.
class BlockProduct {
 public:
  BlockProduct(const Context& context, const GemmI8Args& args, const GemmI8Tile& tile,
               const Cut& cut, const GemmI8MultiplyArgs& block)
      : context_(context), args_(args), tile_(tile), cut_(cut), block_(block) {}

  void Run() const {
    const int64_t chunks = Quotient(args_.n, cut_.chunk_columns);
    context_.ParallelFor(chunks * Parts(), 1,
                         [&](int64_t begin, int64_t end) { RunPieces(begin, end); });
  }

 private:
  int64_t Parts() const { return Quotient(block_.m_count, cut_.part_rows); }

  // Pieces are ordered by chunk, so that a thread packs a chunk once for all the parts that it
  // takes.
  void RunPieces(int64_t begin, int64_t end) const {
    ScratchFrame frame;
    std::byte* panels = frame.Get<std::byte>(cut_.chunk_columns / tile_.columns * block_.b_pitch);
    int32_t* corrections = frame.Get<int32_t>(cut_.chunk_columns);
    GemmI8MultiplyArgs chunk = block_;
    if (cut_.own_a) {
      auto* a_panels = frame.Get<std::byte>(cut_.block_rows / tile_.rows * block_.a_pitch);
      const GemmI8PackArgs pack =
          PackOfA(args_, tile_, block_.m_first, block_.m_count, block_.a_pitch, a_panels);
      context_.kernels.GemmI8Pack(pack, Range{0, pack.items()});
      chunk.a_panels = a_panels;
    }
    chunk.b_panels = panels;
    chunk.corrections = corrections;
    for (int64_t piece = begin; piece < end; ++piece) {
      if (piece == begin || piece % Parts() == 0) {
        chunk.n_first = piece / Parts() * cut_.chunk_columns;
        chunk.n_count = std::min(cut_.chunk_columns, args_.n - chunk.n_first);
        const GemmI8PackArgs pack = PackOf(chunk.n_first, panels, corrections);
        context_.kernels.GemmI8Pack(pack, Range{0, pack.items()});
      }
      const int64_t row = piece % Parts() * cut_.part_rows;
      const int64_t rows = std::min(cut_.part_rows, block_.m_count - row);
      context_.kernels.GemmI8Multiply(chunk,
                                      Range{row / tile_.rows, Quotient(row + rows, tile_.rows)});
    }
  }

  GemmI8PackArgs PackOf(int64_t n, std::byte* panels, int32_t* corrections) const {
    return {.panels = panels,
            .corrections = corrections,
            .pitch = block_.b_pitch,
            .source = args_.b + n * (args_.transpose_b ? args_.ldb : 1),
            .ld = args_.ldb,
            .lines_contiguous = !args_.transpose_b,
            .is_a = false,
            .width = tile_.columns,
            .lines = std::min(cut_.chunk_columns, args_.n - n),
            .k = args_.k};
  }

  const Context& context_;
  const GemmI8Args& args_;
  const GemmI8Tile& tile_;
  const Cut& cut_;
  const GemmI8MultiplyArgs& block_;
};

}  // namespace

void GemmI8(const Context& context, const GemmI8Args& args) {
  if (args.m <= 0 || args.n <= 0) return;
  if (context.kernels.isa == Isa::kReference) {
    GemmI8Reference(args);
    return;
  }
  const GemmI8Tile tile = TileOf(context.kernels.isa);
  const int64_t groups = Quotient(args.k, tile.group_depth);
  const Cut cut = CutOf(args, tile, groups, context.pool.threads());
  const int64_t a_pitch = PitchOf(tile.rows, groups);
  ScratchFrame frame;
  std::byte* panels =
      cut.own_a ? nullptr : frame.Get<std::byte>(cut.block_rows / tile.rows * a_pitch);
  for (int64_t m = 0; m < args.m; m += cut.block_rows) {
    const int64_t rows = std::min(cut.block_rows, args.m - m);
    if (!cut.own_a) Run(context, PackOfA(args, tile, m, rows, a_pitch, panels));
    const GemmI8MultiplyArgs block = {.gemm = &args,
                                      .a_panels = panels,
                                      .a_pitch = a_pitch,
                                      .b_panels = nullptr,
                                      .b_pitch = PitchOf(tile.columns, groups),
                                      .corrections = nullptr,
                                      .groups = groups,
                                      .m_first = m,
                                      .m_count = rows,
                                      .n_first = 0,
                                      .n_count = 0};
    BlockProduct(context, args, tile, cut, block).Run();
  }
}

}  // namespace lockstep::kernels
