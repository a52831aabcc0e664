// SPDX-License-Identifier: Apache-2.0
//
// The random fills over a vector backend V: kWidth blocks at a time, whose 4 kWidth numbers are put
// in order in a small buffer.
#ifndef LOCKSTEP_KERNELS_RANDOM_FILL_BODY_H_
#define LOCKSTEP_KERNELS_RANDOM_FILL_BODY_H_

#include "kernels/random/distributions.h"
#include "kernels/random/fill.h"
#include "kernels/random/philox.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

// out[i] = number(word of out[i]) for i in range.
template <class V, class T, class Number>
void FillV(T* out, const RandomSource& source, Range range, Number&& number) {
  constexpr int kNumbers = 4 * V::kWidth;
  // In the stream's own indices.
  const uint64_t begin = source.first + static_cast<uint64_t>(range.begin);
  const uint64_t end = source.first + static_cast<uint64_t>(range.end);
  float buffer[kNumbers];
  for (uint64_t at = begin - begin % 4; at < end; at += kNumbers) {
    const PhiloxBlocks<V> w = PhiloxBlocksV<V>(source.seed, source.stream, at / 4);
    V::StoreInterleavedRaw(buffer, number(w.word[0]), number(w.word[1]), number(w.word[2]),
                           number(w.word[3]));
    if (at >= begin && end - at >= kNumbers) {
      T* p = out + (at - source.first);
      for (int k = 0; k < 4; ++k) {
        StoreV<V>(p + k * V::kWidth, V::Load(buffer + k * V::kWidth), All{});
      }
      continue;
    }
    for (int k = 0; k < kNumbers; ++k) {
      const uint64_t index = at + k;
      if (index >= begin && index < end) Store(&out[index - source.first], buffer[k]);
    }
  }
}

template <class V>
void UniformFillBody(const UniformFillArgs& args, Range range) {
  FillV<V>(args.out, args.source, range, [](typename V::I word) { return UniformV<V>(word); });
}

template <class V, class Args>
void TruncatedNormalFillBody(const Args& args, Range range) {
  FillV<V>(args.out, args.source, range,
           [&](typename V::I word) { return V::Mul(V::Set(args.sigma), NormalV<V>(word)); });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RANDOM_FILL_BODY_H_
