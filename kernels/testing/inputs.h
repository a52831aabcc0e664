// SPDX-License-Identifier: Apache-2.0
//
// Test inputs that crowd where kernels could differ: the edges of the subnormal range and of Snap,
// cancellation, infinities. Everything is a pure function of a seed.
#ifndef LOCKSTEP_KERNELS_TESTING_INPUTS_H_
#define LOCKSTEP_KERNELS_TESTING_INPUTS_H_

#include <cstdint>

#include "kernels/numeric.h"

namespace lockstep::kernels {

enum class InputKind {
  kNormal,   // like activations: magnitudes around 1, both signs
  kSmall,    // like gradients: magnitudes around 2^-20
  kTiny,     // 2^-126 .. 2^-123 and 0: sums and products meet the flush bound
  kSnap,     // around 2^-62 and 2^-40: the edges of Snap
  kCancel,   // pairs x, -x(1 + ulp): sums cancel to their last bits
  kWide,     // every exponent from 2^-100 to 2^100
  kSpecial,  // infinities, NaN, zeros and the largest numbers among normal ones
};

inline constexpr InputKind kAllInputKinds[] = {
    InputKind::kNormal, InputKind::kSmall, InputKind::kTiny,   InputKind::kSnap,
    InputKind::kCancel, InputKind::kWide,  InputKind::kSpecial};
const char* InputKindName(InputKind kind);

// A 64-bit generator for tests (SplitMix64), not for training.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // In [0, bound).
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(bound));
  }

 private:
  uint64_t state_;
};

// Canonical values, as every stored tensor holds.
void FillInput(float* out, int64_t count, InputKind kind, uint64_t seed);
void FillInput(BFloat16* out, int64_t count, InputKind kind, uint64_t seed);
// Uniform in -127 .. 127, with many extremes.
void FillInput(int8_t* out, int64_t count, InputKind kind, uint64_t seed);
// Uniform in [0, bound).
void FillIndices(int32_t* out, int64_t count, int32_t bound, uint64_t seed);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_TESTING_INPUTS_H_
