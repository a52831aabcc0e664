// SPDX-License-Identifier: Apache-2.0
//
// Column sums: totals of row blocks, then their sum.
#include "kernels/reduce/reduce.h"

#include "kernels/scratch.h"
#include "kernels/sums.h"

namespace lockstep::kernels {

int64_t ColumnBlocksArgs::items() const { return (of.rows + kRowBlock - 1) / kRowBlock; }

void ColumnSums(const Context& context, const ColumnSumsArgs& args) {
  if (context.kernels.isa == Isa::kReference) {
    ColumnSumsReference(args, Range{0, args.cols});
    return;
  }
  ScratchFrame frame;
  ColumnBlocksArgs blocks = {.totals = nullptr, .of = args};
  blocks.totals = frame.Get<float>(blocks.items() * args.cols);
  Run(context, blocks);
  Run(context,
      ColumnFoldArgs{
          .out = args.out, .totals = blocks.totals, .blocks = blocks.items(), .cols = args.cols});
}

}  // namespace lockstep::kernels
