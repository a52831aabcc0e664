// SPDX-License-Identifier: Apache-2.0
//
// Random choices on the host, each a pure function of (seed, stream, index): integers, bounded
// integers, permutations. Random tensors are in fill.h, the generator in philox.h.
#ifndef LOCKSTEP_KERNELS_RANDOM_RANDOM_H_
#define LOCKSTEP_KERNELS_RANDOM_RANDOM_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::kernels {

// The number of the stream of that name: the first 8 bytes of the name's SHA-256, little-endian.
// Names say what is drawn and for whom: "init/layers.3.mlp.up", "data/order/epoch.0".
uint64_t StreamOf(absl::string_view name);

// Uniform in [0, 2^64): words 0 (low) and 1 (high) of block `index` of the stream.
uint64_t RandomInteger(uint64_t seed, uint64_t stream, uint64_t index);

// Uniform in [0, 1): the highest 53 bits of RandomInteger times 2^-53.
double RandomUniform64(uint64_t seed, uint64_t stream, uint64_t index);

// In [0, bound): floor(RandomInteger * bound / 2^64), by the exact 128-bit product. Each value's
// probability differs from 1 / bound by less than 2^-64. bound >= 1.
uint64_t RandomBelow(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

// A random order of 0 ... n - 1, by Fisher and Yates: from the identity, for k = n - 1 down to 1,
// entry k is exchanged with entry RandomBelow(seed, stream, k, k + 1). n >= 0.
std::vector<int64_t> RandomPermutation(uint64_t seed, uint64_t stream, int64_t n);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RANDOM_RANDOM_H_
