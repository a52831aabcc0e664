// SPDX-License-Identifier: Apache-2.0
//
// The random fills: conformance, moments, bounds, independence of how a tensor is cut.
#include "kernels/random/fill.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/random/distributions.h"
#include "kernels/random/philox.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kSizes[] = {0, 1, 3, 4, 5, 15, 16, 17, 31, 33, 63, 64, 65, 127, 300};
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
struct NormalShape {
  int64_t count;
  uint64_t first;
  float sigma;
};
std::vector<NormalShape> NormalShapes() {
  std::vector<NormalShape> shapes;
  for (int64_t count : kSizes) {
    for (uint64_t first : {0, 6}) shapes.push_back({count, first, 0.02f});
  }
  for (uint64_t first : kFirsts) shapes.push_back({300, first, 1.0f});
  shapes.push_back({300, 0, 0x1p-124f});
  return shapes;
}

template <class T, class Args>
void NormalCases(Cases& cases) {
  for (const NormalShape& shape : NormalShapes()) {
    Case& c = cases.New(std::to_string(shape.count) + " from " + std::to_string(shape.first),
                        InputKind::kNormal);
    c.Runs(Args{.out = c.Output<T>(shape.count),
                .count = shape.count,
                .sigma = shape.sigma,
                .source = {.seed = 42, .stream = 43, .first = shape.first}});
  }
}

KERNEL_CASES(TruncatedNormalFillF32, cases) {
  NormalCases<float, TruncatedNormalFillF32Args>(cases);
}

KERNEL_CASES(TruncatedNormalFillBf16, cases) {
  NormalCases<BFloat16, TruncatedNormalFillBf16Args>(cases);
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

#if defined(__aarch64__)
constexpr int64_t kDraws = 1 << 17;  // this build may run under an emulator
#else
constexpr int64_t kDraws = 1 << 20;
#endif

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

// The extreme words come to the cut and do not pass it; words from the middle are one step from 0.
TEST(TruncatedNormalFill, ExtremeWords) {
  EXPECT_LE(NormalV<Scalar>(-1), 2.0f);
  EXPECT_GT(NormalV<Scalar>(-1), 1.99999f);
  EXPECT_EQ(NormalV<Scalar>(0), -NormalV<Scalar>(-1));
  EXPECT_NEAR(NormalV<Scalar>(INT32_MIN), 0x1p-24 * 1.1963, 0x1p-30);
  EXPECT_EQ(NormalV<Scalar>(INT32_MAX), -NormalV<Scalar>(INT32_MIN));
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
