// SPDX-License-Identifier: Apache-2.0
//
// The generator behind every random choice: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011). It has no state: a block of four 32-bit words is a
// function of a key and a counter.
//
// In this project the key is the run's seed and the counter names a place: block b of a stream is
//   Philox(counter = (b low, b high, stream low, stream high), key = (seed low, seed high)),
// low and high being the halves of 64-bit numbers. Word i of a stream is word i % 4 of block i / 4.
// Streams are named in stream.h. A stream is read either by words (fill.h) or by blocks (random.h),
// not both, so that no two choices share bits.
#ifndef LOCKSTEP_KERNELS_RANDOM_PHILOX_H_
#define LOCKSTEP_KERNELS_RANDOM_PHILOX_H_

#include <cstdint>

#include "kernels/simd/scalar.h"

namespace lockstep::kernels {

// Four words of kWidth blocks, or the counters of them.
template <class V>
struct PhiloxBlocks {
  typename V::I word[4];
};

// Ten rounds; the key grows by two constants from round to round.
template <class V>
PhiloxBlocks<V> PhiloxV(PhiloxBlocks<V> counter, uint64_t seed) {
  using I = typename V::I;
  const I first_factor = V::SetI(static_cast<int32_t>(0xd2511f53u));
  const I second_factor = V::SetI(static_cast<int32_t>(0xcd9e8d57u));
  uint32_t key0 = static_cast<uint32_t>(seed);
  uint32_t key1 = static_cast<uint32_t>(seed >> 32);
  PhiloxBlocks<V> c = counter;
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const I high0 = V::MulHighU(first_factor, c.word[0]);
    const I low0 = V::MulI(first_factor, c.word[0]);
    const I high1 = V::MulHighU(second_factor, c.word[2]);
    const I low1 = V::MulI(second_factor, c.word[2]);
    c = {V::XorI(V::XorI(high1, c.word[1]), V::SetI(static_cast<int32_t>(key0))), low1,
         V::XorI(V::XorI(high0, c.word[3]), V::SetI(static_cast<int32_t>(key1))), low0};
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return c;
}

// Block `block` of a stream.
static inline PhiloxBlocks<Scalar> PhiloxBlock(uint64_t seed, uint64_t stream, uint64_t block) {
  return PhiloxV<Scalar>({static_cast<int32_t>(block), static_cast<int32_t>(block >> 32),
                          static_cast<int32_t>(stream), static_cast<int32_t>(stream >> 32)},
                         seed);
}

// Word `index` of a stream.
static inline uint32_t PhiloxWord(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<uint32_t>(PhiloxBlock(seed, stream, index / 4).word[index % 4]);
}

// Blocks block ... block + kWidth - 1 of a stream.
template <class V>
PhiloxBlocks<V> PhiloxBlocksV(uint64_t seed, uint64_t stream, uint64_t block) {
  using I = typename V::I;
  static constexpr int32_t kLane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const I first = V::SetI(static_cast<int32_t>(block));
  const I low = V::AddI(first, V::LoadI(kLane));
  // Unsigned low < first where the addition went past 2^32.
  const I sign = V::SetI(INT32_MIN);
  const auto carried = V::LtI(V::XorI(low, sign), V::XorI(first, sign));
  const I high = V::SetI(static_cast<int32_t>(block >> 32));
  return PhiloxV<V>(
      {low, V::SelectI(carried, V::AddI(high, V::SetI(1)), high),
       V::SetI(static_cast<int32_t>(stream)), V::SetI(static_cast<int32_t>(stream >> 32))},
      seed);
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RANDOM_PHILOX_H_
