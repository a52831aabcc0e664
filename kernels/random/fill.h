// SPDX-License-Identifier: Apache-2.0
//
// Tensors of random numbers: each element is a pure function of (seed, stream, index), so a tensor
// may be filled in any pieces by anyone. Element i of `out` has index first + i and is made from
// word `index` of the stream (philox.h):
//   Uniform(w)  = (w >> 8) * 2^-24                            in [0, 1), all 24-bit fractions
//   Centred(w)  = (2 (w >> 8) + 1 - 2^24) * 2^-24             in (-1, 1), odd multiples: never 0,
//   +-1 Normal(w)   = clamp(Erfinv(Centred(w) * kErfOfCut) * kSqrt2)  between -2 and 2
// w >> 8 and the integers are exact, every product is one binary32 rounding, clamp is
// Max(Min(z, 2), -2), Erfinv is that of math/erfinv.h. Normal is a standard normal number on the
// condition that it lies in [-2, 2]: mean 0, standard deviation 0.8796.
#ifndef LOCKSTEP_KERNELS_RANDOM_FILL_H_
#define LOCKSTEP_KERNELS_RANDOM_FILL_H_

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

constexpr float kErfOfCut = 0x1.e8b430p-1f;  // erf(2 / sqrt 2)
constexpr float kSqrt2 = 0x1.6a09e6p+0f;
constexpr float kNormalCut = 2.0f;

// Where random numbers come from. first + count stays below 2^63.
struct RandomSource {
  uint64_t seed;       // of the run
  uint64_t stream;     // StreamOf(name), random.h
  uint64_t first = 0;  // index of the first element
};

// out[i] = Uniform.
struct UniformFillArgs {
  float* out;  // [count]
  int64_t count;
  RandomSource source;

  int64_t items() const { return count; }  // elements
  int64_t grain() const { return 8192; }
};

// out[i] = sigma * Normal, one more product, canonical: an initial weight, cut at two sigma. sigma
// is that of the normal distribution before the cut.
struct TruncatedNormalFillF32Args {
  float* out;  // [count]
  int64_t count;
  float sigma;
  RandomSource source;

  int64_t items() const { return count; }  // elements
  int64_t grain() const { return 4096; }
};

// The same, rounded to bf16 as every store is.
struct TruncatedNormalFillBf16Args {
  BFloat16* out;  // [count]
  int64_t count;
  float sigma;
  RandomSource source;

  int64_t items() const { return count; }  // elements
  int64_t grain() const { return 4096; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RANDOM_FILL_H_
