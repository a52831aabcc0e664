// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of cross-entropy with z-loss.
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/math/exp.h"
#include "kernels/math/log.h"
#include "kernels/numeric.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

float Largest(const float* x, int64_t n) {
  float m = FromBits(0xff800000u);
  for (int64_t j = 0; j < n; ++j) m = Max(x[j], m);
  return m;
}

void Row(const CrossEntropyArgs& args, int64_t row) {
  float* x = args.logits + row * args.vocab;
  const int32_t t = args.targets[row];
  const float g = args.scale;
  const float m = Largest(x, args.vocab);
  const auto e = [&](int64_t j) { return Snap(Exp(x[j] - m)); };
  const float s = RowSum(args.vocab, e);
  const float lse = Canon(m + Log(s));
  Store(&args.loss[row], lse - x[t]);
  Store(&args.z[row], lse * lse);
  if (!args.gradient) return;
  const float b = Canon((2.0f * args.z_coefficient) * lse);
  const float c = Canon(Fma(b, g, g));
  const float r = Canon(c * (1.0f / s));
  for (int64_t j = 0; j < args.vocab; ++j) {
    Store(&x[j], j == t ? Fma(e(j), r, -g) : e(j) * r);
  }
}

void IgnoredRow(const CrossEntropyArgs& args, int64_t row) {
  args.loss[row] = 0.0f;
  args.z[row] = 0.0f;
  if (!args.gradient) return;
  for (int64_t j = 0; j < args.vocab; ++j) args.logits[row * args.vocab + j] = 0.0f;
}

}  // namespace

void CrossEntropyReference(const CrossEntropyArgs& args, Range range) {
  for (int64_t row = range.begin; row < range.end; ++row) {
    if (args.targets[row] == kIgnoredTarget) {
      IgnoredRow(args, row);
    } else {
      Row(args, row);
    }
  }
}

}  // namespace lockstep::kernels
