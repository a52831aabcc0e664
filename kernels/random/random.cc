// SPDX-License-Identifier: Apache-2.0
//
// Integers and permutations from Philox blocks.
#include "kernels/random/random.h"

#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/sha256.h"
#include "kernels/random/philox.h"

namespace lockstep::kernels {
namespace {

// The higher half of a * b.
uint64_t MultiplyHigh(uint64_t a, uint64_t b) {
  const uint64_t a_low = a & 0xffffffffu, a_high = a >> 32;
  const uint64_t b_low = b & 0xffffffffu, b_high = b >> 32;
  const uint64_t low = a_low * b_low;
  const uint64_t middle = a_high * b_low + (low >> 32);  // < 2^64: (2^32 - 1)^2 + 2^32 - 1
  const uint64_t other = a_low * b_high + (middle & 0xffffffffu);
  return a_high * b_high + (middle >> 32) + (other >> 32);
}

}  // namespace

uint64_t StreamOf(absl::string_view name) {
  const Digest digest = Sha256(AsBytes(name));
  uint64_t stream = 0;
  for (int i = 7; i >= 0; --i) stream = (stream << 8) | digest.bytes[i];
  return stream;
}

uint64_t RandomInteger(uint64_t seed, uint64_t stream, uint64_t index) {
  const PhiloxBlocks<Scalar> block = PhiloxBlock(seed, stream, index);
  return static_cast<uint32_t>(block.word[0]) |
         (static_cast<uint64_t>(static_cast<uint32_t>(block.word[1])) << 32);
}

double RandomUniform64(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<double>(RandomInteger(seed, stream, index) >> 11) * 0x1p-53;
}

uint64_t RandomBelow(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound) {
  return MultiplyHigh(RandomInteger(seed, stream, index), bound);
}

std::vector<int64_t> RandomPermutation(uint64_t seed, uint64_t stream, int64_t n) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t k = n - 1; k > 0; --k) {
    const auto other = static_cast<int64_t>(RandomBelow(seed, stream, k, k + 1));
    std::swap(order[k], order[other]);
  }
  return order;
}

}  // namespace lockstep::kernels
