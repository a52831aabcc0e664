// SPDX-License-Identifier: Apache-2.0
//
// The random fills: conformance, moments, bounds, independence of how a tensor is cut.
#include "kernels/random/fill.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/random/philox.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kSizes[] = {0, 1, 3, 4, 5, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 1000, 5000};
// Inside a block, in the middle of a vector of blocks, and where the block number outgrows 32 bits.
constexpr uint64_t kFirsts[] = {0, 1, 6, 63, (uint64_t{1} << 34) - 77};

KERNEL_CASES(UniformFill, cases) {
  for (uint64_t first : kFirsts) {
    for (int64_t count : kSizes) {
      Case& c =
          cases.New(std::to_string(count) + " from " + std::to_string(first), InputKind::kNormal);
      c.Runs(UniformFillArgs{
          .out = c.Output<float>(count),
          .count = count,
          .source = {.seed = 0x0123456789abcdefu, .stream = 0xfedcba9876543210u, .first = first}});
    }
  }
}

// The smallest sigma makes products that must be settled.
constexpr float kSigmas[] = {1.0f, 0.02f, 0x1p-124f};

KERNEL_CASES(TruncatedNormalFillF32, cases) {
  for (float sigma : kSigmas) {
    for (uint64_t first : kFirsts) {
      for (int64_t count : kSizes) {
        Case& c =
            cases.New(std::to_string(count) + " from " + std::to_string(first), InputKind::kNormal);
        c.Runs(TruncatedNormalFillF32Args{.out = c.Output<float>(count),
                                          .count = count,
                                          .sigma = sigma,
                                          .source = {.seed = 42, .stream = 43, .first = first}});
      }
    }
  }
}

KERNEL_CASES(TruncatedNormalFillBf16, cases) {
  for (float sigma : kSigmas) {
    for (uint64_t first : kFirsts) {
      for (int64_t count : kSizes) {
        Case& c =
            cases.New(std::to_string(count) + " from " + std::to_string(first), InputKind::kNormal);
        c.Runs(TruncatedNormalFillBf16Args{.out = c.Output<BFloat16>(count),
                                           .count = count,
                                           .sigma = sigma,
                                           .source = {.seed = 42, .stream = 43, .first = first}});
      }
    }
  }
}

Isa Fastest() {
  const std::vector<Isa> isas = TestedIsas();
  return isas.empty() ? Isa::kReference : isas.back();
}

std::vector<float> Normals(float sigma, int64_t count, uint64_t first = 0) {
  std::vector<float> out(count);
  const TruncatedNormalFillF32Args args = {.out = out.data(),
                                           .count = count,
                                           .sigma = sigma,
                                           .source = {.seed = 7, .stream = 8, .first = first}};
  KernelsFor(Fastest()).TruncatedNormalFillF32(args, Range{0, count});
  return out;
}

TEST(UniformFill, IsTheWordOfTheIndex) {
  std::vector<float> out(10);
  const UniformFillArgs args = {
      .out = out.data(), .count = 10, .source = {.seed = 1, .stream = 2, .first = 3}};
  KernelsFor(Fastest()).UniformFill(args, Range{0, 10});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(out[i], static_cast<float>(PhiloxWord(1, 2, 3 + i) >> 8) * 0x1p-24f);
  }
}

constexpr int64_t kDraws = 1 << 20;

TEST(UniformFill, MomentsAndBounds) {
  std::vector<float> out(kDraws);
  const UniformFillArgs args = {
      .out = out.data(), .count = kDraws, .source = {.seed = 1, .stream = 2}};
  KernelsFor(Fastest()).UniformFill(args, Range{0, kDraws});
  double sum = 0.0, squares = 0.0, neighbours = 0.0;
  for (int64_t i = 0; i < kDraws; ++i) {
    ASSERT_GE(out[i], 0.0f);
    ASSERT_LT(out[i], 1.0f);
    const double u = out[i] - 0.5;
    sum += u;
    squares += u * u;
    if (i > 0) neighbours += u * (out[i - 1] - 0.5);
  }
  // Four standard deviations of each mean.
  const double root = std::sqrt(static_cast<double>(kDraws));
  EXPECT_NEAR(sum / kDraws, 0.0, 4 * 0.2887 / root);
  EXPECT_NEAR(squares / kDraws, 1.0 / 12, 4 * 0.0745 / root);
  EXPECT_NEAR(neighbours / kDraws, 0.0, 4 * 0.0833 / root);
}

TEST(TruncatedNormalFill, MomentsAndBounds) {
  double sum = 0.0, squares = 0.0, fourths = 0.0;
  int64_t inside = 0;
  for (float x : Normals(0.5f, kDraws)) {
    ASSERT_LE(std::fabs(x), 1.0f);
    ASSERT_NE(x, 0.0f);
    const double z = x / 0.5;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
    if (std::fabs(z) < 1.0) ++inside;
  }
  // Of the normal distribution cut at two: variance 0.773741, fourth moment 1.416189, mass within
  // one 0.682689 / 0.954500. Four standard deviations of each mean.
  const double root = std::sqrt(static_cast<double>(kDraws));
  EXPECT_NEAR(sum / kDraws, 0.0, 4 * 0.88 / root);
  EXPECT_NEAR(squares / kDraws, 0.773741, 4 * 0.91 / root);
  EXPECT_NEAR(fourths / kDraws, 1.416189, 4 * 2.8 / root);
  EXPECT_NEAR(static_cast<double>(inside) / kDraws, 0.682689 / 0.954500, 4 * 0.46 / root);
}

// The extreme words meet the cut and do not pass it.
TEST(TruncatedNormalFill, ExtremesAreWithinTheCut) {
  const std::vector<float> values = Normals(1.0f, int64_t{1} << 22);
  float largest = 0.0f;
  for (float x : values) largest = std::fmax(largest, std::fabs(x));
  EXPECT_LE(largest, 2.0f);
  EXPECT_GT(largest, 1.99999f);
}

TEST(TruncatedNormalFill, PiecesAreThoseOfTheWhole) {
  const std::vector<float> whole = Normals(0.02f, 1000);
  for (int64_t begin : {0, 1, 2, 3, 5, 64, 131, 999}) {
    const std::vector<float> piece = Normals(0.02f, 1000 - begin, begin);
    for (int64_t i = begin; i < 1000; ++i) {
      ASSERT_EQ(Bits(piece[i - begin]), Bits(whole[i])) << begin << " " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
