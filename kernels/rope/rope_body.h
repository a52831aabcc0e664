// SPDX-License-Identifier: Apache-2.0
//
// The rotary position embedding over a vector backend V.
#ifndef LOCKSTEP_KERNELS_ROPE_ROPE_BODY_H_
#define LOCKSTEP_KERNELS_ROPE_ROPE_BODY_H_

#include "kernels/rope/rope.h"
#include "kernels/scratch.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// One head. The tables are in the order of pairs; minus_sin is -sin.
template <class V>
void RotateHead(BFloat16* out, const BFloat16* x, const float* cos, const float* sin,
                const float* minus_sin, int64_t half) {
  ForEachPair<V>(0, half, [&](int64_t i, auto n) {
    const typename V::Pair x1 = V::LoadPair(x + i, n);
    const typename V::Pair x2 = V::LoadPair(x + half + i, n);
    const typename V::Pair c = LoadPaired<V>(cos + i);
    const typename V::Pair s = LoadPaired<V>(sin + i);
    const typename V::Pair minus = LoadPaired<V>(minus_sin + i);
    const typename V::Pair crossed1 = FlushPairV<V>(Both<V>(V::Mul, x2, minus));
    const typename V::Pair crossed2 = FlushPairV<V>(Both<V>(V::Mul, x1, s));
    StorePairV<V>(out + i, Both<V>(V::Fma, x1, c, crossed1), n);
    StorePairV<V>(out + half + i, Both<V>(V::Fma, x2, c, crossed2), n);
  });
}

template <class V>
void RopeBody(const RopeArgs& args, Range range) {
  const int64_t half = args.d_head / 2;
  const int64_t paired = PairedCount<V>(half);
  ScratchFrame frame;
  auto* cos = frame.Get<float>(paired);
  auto* sin = frame.Get<float>(paired);
  auto* minus_sin = frame.Get<float>(paired);
  float* straight = args.backward ? minus_sin : sin;
  float* negated = args.backward ? sin : minus_sin;
  for (int64_t t = range.begin; t < range.end; ++t) {
    ArrangePairs<V>(cos, args.cos + t % args.sequence * half, half);
    ArrangePairs<V>(straight, args.sin + t % args.sequence * half, half);
    for (int64_t i = 0; i < paired; i += V::kWidth) {
      V::StoreRaw(negated + i, V::Mul(V::Load(straight + i), V::Set(-1.0f)));
    }
    for (int64_t h = 0; h < args.heads; ++h) {
      RotateHead<V>(args.out + t * args.out_stride + h * args.d_head,
                    args.x + t * args.x_stride + h * args.d_head, cos, sin, minus_sin, half);
    }
  }
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ROPE_ROPE_BODY_H_
