// SPDX-License-Identifier: Apache-2.0
//
// The gradient of RMSNorm's gain: totals of row blocks, then their sum.
#include "kernels/rms_norm/rms_norm.h"

#include "kernels/reduce/reduce.h"
#include "kernels/scratch.h"
#include "kernels/sums.h"

namespace lockstep::kernels {

int64_t RmsNormGainBlocksArgs::items() const {
  return (of.tokens * of.heads + kRowBlock - 1) / kRowBlock;
}

void RmsNormGainGradient(const Context& context, const RmsNormGainGradientArgs& args) {
  if (context.kernels.isa == Isa::kReference) {
    RmsNormGainGradientReference(args, Range{0, args.cols});
    return;
  }
  ScratchFrame frame;
  RmsNormGainBlocksArgs blocks = {.totals = nullptr, .of = args};
  blocks.totals = frame.Get<float>(blocks.items() * args.cols);
  Run(context, blocks);
  Run(context,
      ColumnFoldArgs{
          .out = args.dgain, .totals = blocks.totals, .blocks = blocks.items(), .cols = args.cols});
}

}  // namespace lockstep::kernels
