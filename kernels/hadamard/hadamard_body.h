// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard kernels over a vector backend V with two additions (hadamard_<isa>.cc): kLog,
// the logarithm of how many vectors a sweep may hold in registers, and Exchange<h>(x), x with lanes
// i and i ^ h exchanged.
//
// Butterflies between whole vectors are done in sweeps: 2^kLog vectors are loaded, taken through
// kLog stages in registers and written to a buffer that stays in the first cache; the last sweep
// hands its vectors on. The stages of one element, and so its bits, are the definition's.
#ifndef LOCKSTEP_KERNELS_HADAMARD_HADAMARD_BODY_H_
#define LOCKSTEP_KERNELS_HADAMARD_HADAMARD_BODY_H_

#include "kernels/hadamard/hadamard.h"
#include "kernels/quantize/quantize_body.h"
#include "kernels/scratch.h"
#include "kernels/simd/ops.h"

namespace lockstep::kernels {

#define LOCKSTEP_ALWAYS_INLINE __attribute__((always_inline))

// Stages kH, 2 kH, ... below kCount between the vectors x[0 .. kCount-1]. The difference is written
// as an fma, a - b * 1, which rounds as the subtraction does: processors that add and multiply in
// different units then use both.
template <class V, int kCount, int kH = 1>
LOCKSTEP_ALWAYS_INLINE inline void Butterflies(typename V::F* x) {
  if constexpr (kH < kCount) {
#pragma GCC unroll 16
    for (int pair = 0; pair < kCount / 2; ++pair) {
      const int i = pair / kH * (2 * kH) + pair % kH;
      const typename V::F a = x[i];
      const typename V::F b = x[i + kH];
      x[i] = V::Add(a, b);
      x[i + kH] = V::Fnma(b, V::Set(1.0f), a);
    }
    Butterflies<V, kCount, 2 * kH>(x);
  }
}

// put(what the stages make of kCount vectors that next() gives one after the other).
template <class V, int kCount, class Next, class Put>
LOCKSTEP_ALWAYS_INLINE inline void Sweep(Next&& next, Put&& put) {
  typename V::F x[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) x[i] = next();
  Butterflies<V, kCount>(x);
  put(x);
}

// Reads vectors at, at + step, ...
template <class V>
struct VectorsFrom {
  const float* at;
  int64_t step;
  LOCKSTEP_ALWAYS_INLINE inline typename V::F operator()() {
    const typename V::F x = V::Load(at);
    at += step;
    return x;
  }
};

// fn(i, x[i]), unrolled.
template <class V, int kCount, class Fn>
LOCKSTEP_ALWAYS_INLINE inline void ForEachOf(const typename V::F (&x)[kCount], Fn&& fn) {
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) fn(i, x[i]);
}

// Writes vectors x to p, p + step, ...
template <class V, int kCount>
LOCKSTEP_ALWAYS_INLINE inline void StoreSweep(float* p, int64_t step,
                                              const typename V::F (&x)[kCount]) {
  ForEachOf<V>(
      x, [&](int i, typename V::F y) LOCKSTEP_ALWAYS_INLINE { V::StoreRaw(p + i * step, y); });
}

// The largest magnitude of each lane.
template <class V, int kCount>
LOCKSTEP_ALWAYS_INLINE inline typename V::I AmaxSweep(const typename V::F (&x)[kCount]) {
  typename V::I largest = MagnitudeBitsV<V>(x[0]);
#pragma GCC unroll 16
  for (int i = 1; i < kCount; ++i) largest = V::MaxI(largest, MagnitudeBitsV<V>(x[i]));
  return largest;
}

template <int kValue>
struct Constant {
  static constexpr int value = kValue;
};

// fn(Constant<log>), log in 0 .. 4.
template <class Fn>
LOCKSTEP_ALWAYS_INLINE inline void WithLog(int log, Fn&& fn) {
  switch (log) {
    case 0:
      return fn(Constant<0>());
    case 1:
      return fn(Constant<1>());
    case 2:
      return fn(Constant<2>());
    case 3:
      return fn(Constant<3>());
    default:
      return fn(Constant<4>());
  }
}

// Transforms `strands` sequences of 2^log vectors: load(s, i) gives a function whose calls give
// vectors i, i + 1, ... of strand s; emit(s, i, step, x) takes the results i, i + step, ... of
// strand s, as many as the array x has. buffer: strands * 2^log vectors. The first sweeps take the
// strands in turn, so that a cache line that holds several of them is fetched once.
template <class V, class Load, class Emit>
LOCKSTEP_ALWAYS_INLINE inline void TransformBySweeps(int log, int strands, float* buffer,
                                                     Load&& load, Emit&& emit) {
  constexpr int kCount = 1 << V::kLog;
  const int count = 1 << log;
  for (int first = 0; first < count; first += kCount) {
    for (int s = 0; s < strands; ++s) {
      float* at = buffer + (s * count + first) * V::kWidth;
      Sweep<V, kCount>(load(s, first), [&](const auto& x) LOCKSTEP_ALWAYS_INLINE {
        StoreSweep<V>(at, V::kWidth, x);
      });
    }
  }
  for (int s = 0; s < strands; ++s) {
    float* strand = buffer + s * count * V::kWidth;
    int done = V::kLog;
    for (; log - done > V::kLog; done += V::kLog) {
      const int64_t step = V::kWidth << done;
      for (int i = 0; i < count; i += kCount << done) {
        for (int j = 0; j < 1 << done; ++j) {
          float* at = strand + (i + j) * V::kWidth;
          Sweep<V, kCount>(VectorsFrom<V>{at, step}, [&](const auto& x) LOCKSTEP_ALWAYS_INLINE {
            StoreSweep<V>(at, step, x);
          });
        }
      }
    }
    WithLog(log - done, [&](auto k) LOCKSTEP_ALWAYS_INLINE {
      const int64_t step = V::kWidth << done;
      for (int j = 0; j < 1 << done; ++j) {
        Sweep<V, 1 << decltype(k)::value>(VectorsFrom<V>{strand + j * V::kWidth, step},
                                          [&](const auto& x)
                                              LOCKSTEP_ALWAYS_INLINE { emit(s, j, 1 << done, x); });
      }
    });
  }
}

static inline int Log2(int64_t power) { return __builtin_ctzll(static_cast<uint64_t>(power)); }

// Lane i of row h: -1 where i has bit 2^h, which takes part as the subtrahend.
static constexpr float kSigns[4][16] = {{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1},
                                        {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1},
                                        {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1},
                                        {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1}};

// The stages h < kLanes within a vector. Multiplying by 1 or -1 is exact, so the fma rounds as the
// addition or subtraction does.
template <class V, int kLanes, int kStage = 0>
LOCKSTEP_ALWAYS_INLINE inline typename V::F LaneButterflies(typename V::F x) {
  constexpr int kH = 1 << kStage;
  if constexpr (kH < kLanes && kH < V::kWidth) {
    const typename V::F y = V::Fma(x, V::Load(kSigns[kStage]), V::template Exchange<kH>(x));
    return LaneButterflies<V, kLanes, kStage + 1>(y);
  } else {
    return x;
  }
}

// Reads vectors of elements, snapped, with the stages within a vector done.
template <class V, class T>
struct LaneTransformed {
  const T* at;
  LOCKSTEP_ALWAYS_INLINE inline typename V::F operator()() {
    const typename V::F x = SnapV<V>(V::Load(at));
    at += V::kWidth;
    return LaneButterflies<V, V::kWidth>(x);
  }
};

// Transforms x[0 .. count-1] in blocks. The results are handed on in arrays of vectors: emit(i,
// step, n, y) takes n lanes of each from elements i, i + step, ... on. buffer: block elements.
template <class V, class T, class Emit>
LOCKSTEP_ALWAYS_INLINE inline void TransformSpan(const T* x, int64_t count, int64_t block,
                                                 float* buffer, Emit&& emit) {
  using F = typename V::F;
  if (block < V::kWidth) {
    WithLog(Log2(block), [&](auto k) LOCKSTEP_ALWAYS_INLINE {
      ForEachVector<V>(0, count, [&](int64_t i, auto n) {
        const F y[1] = {LaneButterflies<V, 1 << decltype(k)::value>(SnapV<V>(V::Load(x + i, n)))};
        emit(i, 0, n, y);
      });
    });
    return;
  }
  const int log = Log2(block / V::kWidth);
  for (int64_t b = 0; b < count; b += block) {
    const auto load = [&](int, int i) LOCKSTEP_ALWAYS_INLINE {
      return LaneTransformed<V, T>{x + b + i * V::kWidth};
    };
    const auto put = [&](int, int64_t i, int64_t step, const auto& y) LOCKSTEP_ALWAYS_INLINE {
      emit(b + i * V::kWidth, step * V::kWidth, All{}, y);
    };
    if (log > V::kLog) {
      TransformBySweeps<V>(log, 1, buffer, load, put);
    } else {
      WithLog(log, [&](auto k) LOCKSTEP_ALWAYS_INLINE {
        Sweep<V, 1 << decltype(k)::value>(
            load(0, 0), [&](const auto& y) LOCKSTEP_ALWAYS_INLINE { put(0, 0, 1, y); });
      });
    }
  }
}

template <class V>
void HadamardRowsBody(const HadamardRowsArgs& args, Range range) {
  ScratchFrame scratch;
  float* buffer = scratch.Get<float>(args.block);
  const int64_t begin = range.begin * args.block;
  WithFloats(args.x, [&](const auto* x) {
    TransformSpan<V>(x + begin, (range.end - range.begin) * args.block, args.block, buffer,
                     [&](int64_t i, int64_t step, auto n, const auto& y) LOCKSTEP_ALWAYS_INLINE {
                       ForEachOf<V>(y, [&](int j, typename V::F yj) LOCKSTEP_ALWAYS_INLINE {
                         StoreV<V>(args.out + begin + i + j * step, yj, n);
                       });
                     });
  });
}

template <class V>
void HadamardQuantizeRowsBody(const HadamardQuantizeRowsArgs& args, Range range) {
  ScratchFrame scratch;
  float* buffer = scratch.Get<float>(args.block);
  float* row = scratch.Get<float>(args.cols);
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      typename V::I largest = V::SetI(0);
      TransformSpan<V>(x + r * args.cols, args.cols, args.block, buffer,
                       [&](int64_t i, int64_t step, auto n, const auto& y) LOCKSTEP_ALWAYS_INLINE {
                         ForEachOf<V>(y, [&](int j, typename V::F yj) LOCKSTEP_ALWAYS_INLINE {
                           V::StoreRaw(row + i + j * step, yj, n);
                         });
                         largest = V::MaxI(largest, AmaxSweep<V>(y));
                       });
      const float amax = FromBits(static_cast<uint32_t>(V::MaxLane(largest)));
      Store(&args.scale[r], StepOfAmax(amax) * args.gain);
      QuantizeBoundedSpan<V>(args.q + r * args.cols, row, args.cols, amax);
    }
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_HADAMARD_HADAMARD_BODY_H_
