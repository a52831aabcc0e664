// SPDX-License-Identifier: Apache-2.0
//
// The generator against its published vectors, streams, integers and permutations.
#include "kernels/random/random.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/random/philox.h"

namespace lockstep::kernels {
namespace {

std::vector<uint32_t> Words(PhiloxBlocks<Scalar> block) {
  std::vector<uint32_t> words;
  for (int32_t word : block.word) words.push_back(static_cast<uint32_t>(word));
  return words;
}

// The lines "philox4x32 10" of kat_vectors in the Random123 distribution (D. E. Shaw Research).
TEST(Philox, KnownAnswers) {
  const auto philox = [](uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                         uint32_t k1) {
    const auto word = [](uint32_t x) { return static_cast<int32_t>(x); };
    return Words(PhiloxV<Scalar>({word(c0), word(c1), word(c2), word(c3)},
                                 k0 | (static_cast<uint64_t>(k1) << 32)));
  };
  EXPECT_THAT(philox(0, 0, 0, 0, 0, 0),
              testing::ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_THAT(philox(kOnes, kOnes, kOnes, kOnes, kOnes, kOnes),
              testing::ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox(0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u, 0x299f31d0u),
              testing::ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

// The last of these vectors, as a place in a stream.
TEST(Philox, SeedStreamAndIndexAreTheHalvesOfKeyAndCounter) {
  const uint64_t seed = 0x299f31d0a4093822u;
  const uint64_t stream = 0x0370734413198a2eu;
  const uint64_t block = 0x85a308d3243f6a88u;
  EXPECT_EQ(Words(PhiloxBlock(seed, stream, block))[0], 0xd16cfe09u);
  EXPECT_EQ(RandomInteger(seed, stream, block), 0x94fdccebd16cfe09u);
  EXPECT_EQ(PhiloxWord(0, 0, 2), 0xbc57ac4cu);
}

TEST(Stream, IsTheHeadOfTheNamesDigest) {
  EXPECT_EQ(StreamOf("init"), 0xa7fa85ea8a0654bbu);
  EXPECT_EQ(StreamOf("init/embedding"), 0x512ad0fa1ec023c1u);
}

TEST(RandomBelow, IsTheHigherHalfOfTheProduct) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t word = RandomInteger(5, 6, i);
    EXPECT_EQ(RandomBelow(5, 6, i, 1), 0u);
    EXPECT_EQ(RandomBelow(5, 6, i, uint64_t{1} << 63), word >> 1);
    EXPECT_EQ(RandomBelow(5, 6, i, uint64_t{1} << 32), word >> 32);
    // x * (2^64 - 1) = x * 2^64 - x: the higher half is x - 1, of 0 it is 0.
    EXPECT_EQ(RandomBelow(5, 6, i, ~uint64_t{0}), word == 0 ? 0 : word - 1);
  }
}

TEST(RandomBelow, FillsItsRangeEvenly) {
  constexpr int kBound = 10;
  constexpr int kDraws = 100000;
  std::vector<int> seen(kBound);
  for (int i = 0; i < kDraws; ++i) ++seen[RandomBelow(1, StreamOf("evenly"), i, kBound)];
  double chi_squared = 0.0;
  for (int count : seen) chi_squared += std::pow(count - kDraws / kBound, 2) / (kDraws / kBound);
  EXPECT_LT(chi_squared, 27.9);  // 9 degrees of freedom: exceeded once in a thousand
}

TEST(RandomUniform64, MeanAndBounds) {
  double sum = 0.0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = RandomUniform64(2, 3, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 4.0 / std::sqrt(12.0 * kDraws));
}

TEST(RandomPermutation, IsOneAndFollowsItsDefinition) {
  EXPECT_TRUE(RandomPermutation(1, 2, 0).empty());
  EXPECT_THAT(RandomPermutation(1, 2, 1), testing::ElementsAre(0));
  const std::vector<int64_t> order = RandomPermutation(1, 2, 1000);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(sorted[i], i);
  // The first exchange is the last entry's, and nothing touches that again.
  EXPECT_EQ(order[999], static_cast<int64_t>(RandomBelow(1, 2, 999, 1000)));
  EXPECT_NE(order, RandomPermutation(1, 3, 1000));
  EXPECT_NE(order, RandomPermutation(2, 2, 1000));
}

TEST(RandomPermutation, EveryOrderIsEquallyLikely) {
  std::vector<int> seen(27);
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<int64_t> order = RandomPermutation(9, i, 3);
    ++seen[order[0] * 9 + order[1] * 3 + order[2]];
  }
  double chi_squared = 0.0;
  int orders = 0;
  for (int count : seen) {
    if (count == 0) continue;
    ++orders;
    chi_squared += std::pow(count - kDraws / 6, 2) / (kDraws / 6);
  }
  EXPECT_EQ(orders, 6);
  EXPECT_LT(chi_squared, 20.5);  // 5 degrees of freedom: exceeded once in a thousand
}

}  // namespace
}  // namespace lockstep::kernels
