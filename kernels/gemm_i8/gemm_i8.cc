// SPDX-License-Identifier: Apache-2.0
//
// The driver of the int8 matrix product: cuts both operands into blocks that fit the shared cache
// when packed, and has the threads pack and multiply them together. The depth is not cut, so a tile
// of the result is finished in registers and can be dequantised there.
#include "kernels/gemm_i8/gemm_i8.h"

#include <algorithm>

#include "kernels/context.h"
#include "kernels/gemm_i8/gemm_i8_inner.h"
#include "kernels/scratch.h"

namespace lockstep::kernels {
namespace {

// Packed bytes of a block of A or B, and of the panels of B that should stay in a core's own cache.
constexpr int64_t kBlockBytes = int64_t{8} << 20;
constexpr int64_t kChunkBytes = int64_t{512} << 10;
// A block of A has at least so many rows, however deep: packing B again for each costs little then.
constexpr int64_t kBlockLinesMin = 256;

int64_t RoundUp(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

// Of a vector instruction set.
GemmI8Tile TileOf(Isa isa) {
  if (isa == Isa::kAvx512) return kGemmI8TileAvx512;
  if (isa == Isa::kAvx2) return kGemmI8TileAvx2;
  return kGemmI8TileNeon;
}

// One operand's packed form, a block of it at a time.
struct Packing {
  int64_t width;
  int64_t pitch;
  int64_t block;  // lines
  std::byte* panels;

  Packing(ScratchFrame& frame, int64_t panel_width, int64_t groups, int64_t lines)
      : width(panel_width) {
    // A whole block of groups may be written at the end, and one vector beyond it.
    pitch = RoundUp(RoundUp(groups, kGemmI8GroupBlock) * width * 4 + 64, 64);
    const int64_t fitting = std::max(kBlockBytes / pitch * width, kBlockLinesMin);
    const int64_t blocks = (lines + fitting - 1) / fitting;
    block = RoundUp((lines + blocks - 1) / blocks, width);
    panels = frame.Get<std::byte>(Panels(block) * pitch);
  }
  int64_t Panels(int64_t lines) const { return (lines + width - 1) / width; }
};

}  // namespace

void GemmI8(const Context& context, const GemmI8Args& args) {
  if (args.m <= 0 || args.n <= 0) return;
  if (context.kernels.isa == Isa::kReference) {
    GemmI8Reference(args);
    return;
  }
  const GemmI8Tile tile = TileOf(context.kernels.isa);
  const int64_t groups = RoundUp(args.k, tile.group_depth) / tile.group_depth;
  ScratchFrame frame;
  const Packing a(frame, tile.rows, groups, args.m);
  const Packing b(frame, tile.columns, groups, args.n);
  int32_t* corrections = frame.Get<int32_t>(b.block);

  for (int64_t m = 0; m < args.m; m += a.block) {
    const int64_t m_count = std::min(a.block, args.m - m);
    Run(context, GemmI8PackArgs{.panels = a.panels,
                                .corrections = nullptr,
                                .pitch = a.pitch,
                                .source = args.a + m * (args.transpose_a ? 1 : args.lda),
                                .ld = args.lda,
                                .lines_contiguous = args.transpose_a,
                                .is_a = true,
                                .width = a.width,
                                .lines = m_count,
                                .k = args.k});
    for (int64_t n = 0; n < args.n; n += b.block) {
      const int64_t n_count = std::min(b.block, args.n - n);
      Run(context, GemmI8PackArgs{.panels = b.panels,
                                  .corrections = corrections,
                                  .pitch = b.pitch,
                                  .source = args.b + n * (args.transpose_b ? args.ldb : 1),
                                  .ld = args.ldb,
                                  .lines_contiguous = !args.transpose_b,
                                  .is_a = false,
                                  .width = b.width,
                                  .lines = n_count,
                                  .k = args.k});
      Run(context, GemmI8MultiplyArgs{.gemm = &args,
                                      .a_panels = a.panels,
                                      .a_pitch = a.pitch,
                                      .b_panels = b.panels,
                                      .b_pitch = b.pitch,
                                      .corrections = corrections,
                                      .groups = groups,
                                      .tile = tile,
                                      .m_first = m,
                                      .m_count = m_count,
                                      .n_first = n,
                                      .n_count = n_count,
                                      .b_chunk = std::max<int64_t>(1, kChunkBytes / b.pitch),
                                      .a_panel_count = a.Panels(m_count),
                                      .b_panel_count = b.Panels(n_count)});
    }
  }
}

}  // namespace lockstep::kernels
