// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the gradient's elementwise kernels.
#include "kernels/gradient/gradient.h"

namespace lockstep::kernels {

void AccumulateReference(const AccumulateArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    Store(&args.acc[i], Fma(args.x[i], args.scale, args.acc[i]));
  }
}

void AddIntoReference(const AddIntoArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) Store(&args.acc[i], args.acc[i] + args.x[i]);
}

void ScaleReference(const ScaleArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) Store(&args.x[i], args.x[i] * args.scale);
}

void ConvertBf16Reference(const ConvertBf16Args& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) Store(&args.out[i], args.x[i]);
}

void WidenF32Reference(const WidenF32Args& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) Store(&args.out[i], ToFloat(args.x[i]));
}

}  // namespace lockstep::kernels
