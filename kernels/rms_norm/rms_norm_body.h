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
const float* ArrangedGain(const ConstElements& gain, int64_t cols, ScratchFrame& frame) {
  if (gain.data == nullptr) return nullptr;
  auto* arranged = frame.Get<float>(PairedCount<V>(cols));
  WithFloats(gain, [&](const auto* p) { ArrangePairs<V>(arranged, p, cols); });
  return arranged;
}

// Rows that go through each step together, so that the latencies of short rows overlap.
constexpr int64_t kRmsNormBatch = 16;
template <class V>
int64_t RmsNormBatch(int64_t cols) {
  const int64_t rows = 2048 / (cols + 1);
  return rows < 1 ? 1 : rows < kRmsNormBatch ? rows : kRmsNormBatch;
}

template <class V, bool kGain>
void RmsNormScaleRow(BFloat16* y, const BFloat16* x, const BFloat16* soon, float rstd,
                     const float* gain, int64_t cols) {
  using F = typename V::F;
  const F scale = V::Set(rstd);
  ForEachPair<V>(0, cols, [&](int64_t i, auto n) {
    __builtin_prefetch(soon + i);
    typename V::Pair xhat = Both<V>([&](F a) { return V::Mul(a, scale); }, V::LoadPair(x + i, n));
    if constexpr (kGain) {
      xhat = Both<V>(V::Mul, FlushPairV<V>(xhat), LoadPaired<V>(gain + i));
    }
    StorePairV<V>(y + i, xhat, n);
  });
}

template <class V, bool kGain>
void RmsNormForwardRows(const RmsNormForwardArgs& args, const float* gain, Range range) {
  const int64_t batch = RmsNormBatch<V>(args.cols);
  const BFloat16* x[2 * kRmsNormBatch];  // the batch's rows, and those of the next one
  float rstd[kRmsNormBatch];
  for (int64_t begin = range.begin; begin < range.end; begin += batch) {
    const int64_t rows = range.end - begin < batch ? range.end - begin : batch;
    for (int64_t k = 0; k < 2 * batch; ++k) {
      const int64_t r = begin + k < range.end ? begin + k : range.end - 1;
      x[k] = args.x + RmsNormRowAt<V>(args, r, args.x_stride);
    }
    for (int64_t k = 0; k < rows; ++k) {
      rstd[k] = SumByPairsV<V>(args.cols, [&](typename V::Pair lanes, int64_t i, auto n) {
        const typename V::Pair in = SnapPairV<V>(V::LoadPair(x[k] + i, n));
        return Both<V>(V::Fma, in, in, lanes);
      });
    }
    for (int64_t k = 0; k < rows; ++k) {
      rstd[k] = Rsqrt(Canon(rstd[k] * args.inv_cols) + args.eps);
      Store(&args.rstd[begin + k], rstd[k]);
    }
    for (int64_t k = 0; k < rows; ++k) {
      BFloat16* y = args.y + RmsNormRowAt<V>(args, begin + k, args.y_stride);
      RmsNormScaleRow<V, kGain>(y, x[k], x[k + batch], rstd[k], gain, args.cols);
    }
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

// dy * gain, not yet flushed; dy itself without a gain.
template <class V, bool kGain, class N>
typename V::Pair RmsNormGained(const BFloat16* dy, const float* gain, int64_t i, N n) {
  const typename V::Pair in = V::LoadPair(dy + i, n);
  if constexpr (kGain) return Both<V>(V::Mul, in, LoadPaired<V>(gain + i));
  return in;
}

template <class V, bool kGain>
void RmsNormGradientRow(BFloat16* dx, const BFloat16* dy, const BFloat16* x, int64_t to_next_dy,
                        int64_t to_next_x, const float* gain, float c, float rstd, int64_t cols) {
  using F = typename V::F;
  const F factor = V::Set(c);
  const F scale = V::Set(rstd);
  ForEachPair<V>(0, cols, [&](int64_t i, auto n) {
    __builtin_prefetch(dy + to_next_dy + i);
    __builtin_prefetch(x + to_next_x + i);
    typename V::Pair h = RmsNormGained<V, kGain>(dy, gain, i, n);
    if constexpr (kGain) h = FlushPairV<V>(h);
    const typename V::Pair rest = FlushPairV<V>(
        Both<V>([&](F a, F g) { return V::Fnma(a, factor, g); }, V::LoadPair(x + i, n), h));
    StorePairV<V>(dx + i, Both<V>([&](F t) { return V::Mul(t, scale); }, rest), n);
  });
}

template <class V, bool kGain>
void RmsNormBackwardRows(const RmsNormBackwardArgs& args, const float* gain, Range range) {
  const int64_t batch = RmsNormBatch<V>(args.cols);
  const BFloat16* x[2 * kRmsNormBatch];  // the batch's rows, and those of the next one
  const BFloat16* dy[2 * kRmsNormBatch];
  float c[kRmsNormBatch];
  for (int64_t begin = range.begin; begin < range.end; begin += batch) {
    const int64_t rows = range.end - begin < batch ? range.end - begin : batch;
    for (int64_t k = 0; k < 2 * batch; ++k) {
      const int64_t r = begin + k < range.end ? begin + k : range.end - 1;
      x[k] = args.x + RmsNormRowAt<V>(args, r, args.x_stride);
      dy[k] = args.dy + RmsNormRowAt<V>(args, r, args.dy_stride);
    }
    for (int64_t k = 0; k < rows; ++k) {
      // Snap needs no Canon before it: it turns what is tiny into +0.
      c[k] = RowDotPairsV<V>(
          args.cols,
          [&](int64_t i, auto n) {
            return SnapPairV<V>(RmsNormGained<V, kGain>(dy[k], gain, i, n));
          },
          [&](int64_t i, auto n) { return SnapPairV<V>(V::LoadPair(x[k] + i, n)); });
    }
    for (int64_t k = 0; k < rows; ++k) {
      const float rstd = args.rstd[begin + k];
      c[k] = Canon(Canon(Canon(c[k] * args.inv_cols) * rstd) * rstd);
    }
    for (int64_t k = 0; k < rows; ++k) {
      BFloat16* dx = args.dx + RmsNormRowAt<V>(args, begin + k, args.dx_stride);
      RmsNormGradientRow<V, kGain>(dx, dy[k], x[k], dy[k + batch] - dy[k], x[k + batch] - x[k],
                                   gain, c[k], args.rstd[begin + k], args.cols);
    }
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
      const typename V::Pair xhat =
          Both<V>([&](F a) { return V::Mul(a, rstd[k]); }, V::LoadPair(x[k] + i, n));
      acc = Both<V>(V::Fma, SnapPairV<V>(V::LoadPair(dy[k] + i, n)), SnapPairV<V>(xhat), acc);
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
