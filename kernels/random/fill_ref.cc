// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the random fills.
#include "kernels/random/distributions.h"
#include "kernels/random/fill.h"
#include "kernels/random/philox.h"

namespace lockstep::kernels {
namespace {

int32_t WordOf(const RandomSource& source, int64_t i) {
  return static_cast<int32_t>(
      PhiloxWord(source.seed, source.stream, source.first + static_cast<uint64_t>(i)));
}

}  // namespace

void UniformFillReference(const UniformFillArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    Store(&args.out[i], UniformV<Scalar>(WordOf(args.source, i)));
  }
}

void TruncatedNormalFillF32Reference(const TruncatedNormalFillF32Args& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    Store(&args.out[i], args.sigma * NormalV<Scalar>(WordOf(args.source, i)));
  }
}

void TruncatedNormalFillBf16Reference(const TruncatedNormalFillBf16Args& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    Store(&args.out[i], args.sigma * NormalV<Scalar>(WordOf(args.source, i)));
  }
}

}  // namespace lockstep::kernels
