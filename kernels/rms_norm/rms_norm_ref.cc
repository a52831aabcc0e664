// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of RMSNorm.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

// Where row r of a [tokens, heads, cols] tensor begins.
template <class Args>
int64_t RowAt(const Args& args, int64_t r, int64_t stride) {
  return r / args.heads * stride + r % args.heads * args.cols;
}

bool HasGain(const ConstElements& gain) { return gain.data != nullptr; }

}  // namespace

void RmsNormForwardReference(const RmsNormForwardArgs& args, Range range) {
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* x = args.x + RowAt(args, r, args.x_stride);
    BFloat16* y = args.y + RowAt(args, r, args.y_stride);
    const auto snapped = [&](int64_t i) { return Snap(ToFloat(x[i])); };
    const float ms = Canon(RowDot(args.cols, snapped, snapped) * args.inv_cols);
    const float rstd = Rsqrt(ms + args.eps);
    Store(&args.rstd[r], rstd);
    for (int64_t i = 0; i < args.cols; ++i) {
      const float xhat = Canon(ToFloat(x[i]) * rstd);
      Store(&y[i], HasGain(args.gain) ? xhat * At(args.gain, i) : xhat);
    }
  }
}

void RmsNormBackwardReference(const RmsNormBackwardArgs& args, Range range) {
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* x = args.x + RowAt(args, r, args.x_stride);
    const BFloat16* dy = args.dy + RowAt(args, r, args.dy_stride);
    BFloat16* dx = args.dx + RowAt(args, r, args.dx_stride);
    const float rstd = args.rstd[r];
    const auto h = [&](int64_t i) {
      return HasGain(args.gain) ? Canon(ToFloat(dy[i]) * At(args.gain, i)) : ToFloat(dy[i]);
    };
    const float dot = RowDot(
        args.cols, [&](int64_t i) { return Snap(h(i)); },
        [&](int64_t i) { return Snap(ToFloat(x[i])); });
    const float c = Canon(Canon(Canon(dot * args.inv_cols) * rstd) * rstd);
    for (int64_t i = 0; i < args.cols; ++i) {
      Store(&dx[i], Canon(Fma(-ToFloat(x[i]), c, h(i))) * rstd);
    }
  }
}

void RmsNormGainGradientReference(const RmsNormGainGradientArgs& args, Range range) {
  for (int64_t c = range.begin; c < range.end; ++c) {
    Store(&args.dgain[c], SumByRowBlocks(args.tokens * args.heads, [&](float acc, int64_t r) {
      const float dy = ToFloat(args.dy[RowAt(args, r, args.dy_stride) + c]);
      const float x = ToFloat(args.x[RowAt(args, r, args.x_stride) + c]);
      return Fma(Snap(dy), Snap(x * args.rstd[r]), acc);
    }));
  }
}

}  // namespace lockstep::kernels
