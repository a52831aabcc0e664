// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm over a vector backend V. Rows are read twice: for the sum, then from the cache.
#ifndef LOCKSTEP_KERNELS_RMS_NORM_RMS_NORM_BODY_H_
#define LOCKSTEP_KERNELS_RMS_NORM_RMS_NORM_BODY_H_

#include "kernels/rms_norm/rms_norm.h"
#include "kernels/scratch.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

template <class V, class Args>
int64_t RmsNormRowAt(const Args& args, int64_t r, int64_t stride) {
  return r / args.heads * stride + r % args.heads * args.cols;
}

// The gain as floats in the order of pairs, in scratch; null without a gain.
template <class V>
const float* ArrangedGain(const FloatsIn& gain, int64_t cols, ScratchFrame& frame) {
  if (gain.f32 == nullptr && gain.bf16 == nullptr) return nullptr;
  auto* arranged = frame.Get<float>(PairedCount<V>(cols));
  if (gain.f32 != nullptr) {
    ArrangePairs<V>(arranged, gain.f32, cols);
  } else {
    ArrangePairs<V>(arranged, gain.bf16, cols);
  }
  return arranged;
}

template <class V, bool kGain>
void RmsNormForwardRows(const RmsNormForwardArgs& args, const float* gain, Range range) {
  using F = typename V::F;
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* x = args.x + RmsNormRowAt<V>(args, r, args.x_stride);
    BFloat16* y = args.y + RmsNormRowAt<V>(args, r, args.y_stride);
    const float sum = SumByPairsV<V>(args.cols, [&](typename V::Pair lanes, int64_t i, auto n) {
      return Both<V>(
          [](F a, F lane) {
            const F s = SnapV<V>(a);
            return V::Fma(s, s, lane);
          },
          V::LoadPair(x + i, n), lanes);
    });
    const float rstd = Rsqrt(Canon(sum * args.inv_cols) + args.eps);
    Store(&args.rstd[r], rstd);
    const F scale = V::Set(rstd);
    ForEachPair<V>(0, args.cols, [&](int64_t i, auto n) {
      const typename V::Pair in = V::LoadPair(x + i, n);
      if constexpr (kGain) {
        StorePairV<V>(y + i,
                      Both<V>([&](F a, F g) { return V::Mul(FlushV<V>(V::Mul(a, scale)), g); }, in,
                              LoadPaired<V>(gain + i)),
                      n);
      } else {
        StorePairV<V>(y + i, Both<V>([&](F a) { return V::Mul(a, scale); }, in), n);
      }
    });
  }
}

template <class V>
void RmsNormForwardBody(const RmsNormForwardArgs& args, Range range) {
  ScratchFrame frame;
  const float* gain = ArrangedGain<V>(args.gain, args.cols, frame);
  if (gain != nullptr) {
    RmsNormForwardRows<V, true>(args, gain, range);
  } else {
    RmsNormForwardRows<V, false>(args, gain, range);
  }
}

template <class V, bool kGain>
void RmsNormBackwardRows(const RmsNormBackwardArgs& args, const float* gain, Range range) {
  using F = typename V::F;
  for (int64_t r = range.begin; r < range.end; ++r) {
    const BFloat16* x = args.x + RmsNormRowAt<V>(args, r, args.x_stride);
    const BFloat16* dy = args.dy + RmsNormRowAt<V>(args, r, args.dy_stride);
    BFloat16* dx = args.dx + RmsNormRowAt<V>(args, r, args.dx_stride);
    const auto h = [&](int64_t i, auto n) {
      const typename V::Pair in = V::LoadPair(dy + i, n);
      if constexpr (kGain) return Both<V>(V::Mul, in, LoadPaired<V>(gain + i));
      return in;
    };
    // Snap needs no Canon before it: it turns what is tiny into +0.
    const float dot = RowDotPairsV<V>(
        args.cols, [&](int64_t i, auto n) { return Both<V>(SnapV<V>, h(i, n)); },
        [&](int64_t i, auto n) { return Both<V>(SnapV<V>, V::LoadPair(x + i, n)); });
    const float rstd = args.rstd[r];
    const F c = V::Set(Canon(Canon(Canon(dot * args.inv_cols) * rstd) * rstd));
    const F scale = V::Set(rstd);
    ForEachPair<V>(0, args.cols, [&](int64_t i, auto n) {
      const auto gradient = [&](F a, F g) {
        const F flushed = kGain ? FlushV<V>(g) : g;
        return V::Mul(FlushV<V>(V::Fnma(a, c, flushed)), scale);
      };
      StorePairV<V>(dx + i, Both<V>(gradient, V::LoadPair(x + i, n), h(i, n)), n);
    });
  }
}

template <class V>
void RmsNormBackwardBody(const RmsNormBackwardArgs& args, Range range) {
  ScratchFrame frame;
  const float* gain = ArrangedGain<V>(args.gain, args.cols, frame);
  if (gain != nullptr) {
    RmsNormBackwardRows<V, true>(args, gain, range);
  } else {
    RmsNormBackwardRows<V, false>(args, gain, range);
  }
}

// Adds kRows rows, ascending, to the block's totals, which are in the order of pairs.
template <class V, int kRows>
void AddGainRows(const RmsNormGainGradientArgs& args, int64_t r, float* totals) {
  using F = typename V::F;
  const BFloat16* dy[kRows];
  const BFloat16* x[kRows];
  F rstd[kRows];
  for (int k = 0; k < kRows; ++k) {
    dy[k] = args.dy + RmsNormRowAt<V>(args, r + k, args.dy_stride);
    x[k] = args.x + RmsNormRowAt<V>(args, r + k, args.x_stride);
    rstd[k] = V::Set(args.rstd[r + k]);
  }
  ForEachPair<V>(0, args.cols, [&](int64_t i, auto n) {
    typename V::Pair acc = LoadPaired<V>(totals + i);
#pragma GCC unroll 32
    for (int k = 0; k < kRows; ++k) {
      acc = Both<V>(
          [&](F g, F a, F sum) { return V::Fma(SnapV<V>(g), SnapV<V>(V::Mul(a, rstd[k])), sum); },
          V::LoadPair(dy[k] + i, n), V::LoadPair(x[k] + i, n), acc);
    }
    V::StoreRaw(totals + i, acc.even);
    V::StoreRaw(totals + i + V::kWidth, acc.odd);
  });
}

template <class V>
void RmsNormGainBlocksBody(const RmsNormGainBlocksArgs& args, Range range) {
  const RmsNormGainGradientArgs& of = args.of;
  ScratchFrame frame;
  const int64_t paired = PairedCount<V>(of.cols);
  auto* totals = frame.Get<float>(paired);
  for (int64_t block = range.begin; block < range.end; ++block) {
    for (int64_t i = 0; i < paired; i += V::kWidth) V::StoreRaw(totals + i, V::Set(0.0f));
    const int64_t rows = of.tokens * of.heads;
    const int64_t end = rows < (block + 1) * kRowBlock ? rows : (block + 1) * kRowBlock;
    int64_t r = block * kRowBlock;
    for (; r + 4 <= end; r += 4) AddGainRows<V, 4>(of, r, totals);
    for (; r < end; ++r) AddGainRows<V, 1>(of, r, totals);
    RestorePairs<V>(args.totals + block * of.cols, totals, of.cols);
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RMS_NORM_RMS_NORM_BODY_H_
