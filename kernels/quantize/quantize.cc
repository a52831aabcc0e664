// SPDX-License-Identifier: Apache-2.0
//
// Quantisation of a whole tensor: the largest magnitude of all blocks, then every element by it.
#include "kernels/quantize/quantize.h"

#include <algorithm>

#include "kernels/context.h"
#include "kernels/scratch.h"

namespace lockstep::kernels {

float Amax(const Context& context, ConstElements x, int64_t count) {
  ScratchFrame scratch;
  AmaxBlocksArgs args = {.amax = nullptr, .x = x, .count = count};
  args.amax = scratch.Get<float>(args.items());
  Run(context, args);
  int32_t largest = 0;
  for (int64_t b = 0; b < args.items(); ++b) {
    largest = std::max(largest, MagnitudeBits(args.amax[b]));
  }
  return FromBits(static_cast<uint32_t>(largest));
}

void QuantizeTensor(const Context& context, const QuantizeTensorArgs& args) {
  const float amax = Amax(context, args.x, args.count);
  *args.step = StepOfAmax(amax);
  Run(context, QuantizeArgs{.q = args.q, .x = args.x, .amax = amax, .count = args.count});
}

}  // namespace lockstep::kernels
