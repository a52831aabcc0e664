// SPDX-License-Identifier: Apache-2.0
//
// Conformance of cross-entropy; accuracy of loss and gradient against binary64.
#include "kernels/cross_entropy/cross_entropy.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/numeric.h"
#include "kernels/sums.h"
#include "kernels/testing/conformance.h"

namespace lockstep::kernels {
namespace {

std::vector<int32_t> Targets(int64_t rows, int64_t vocab, uint64_t seed) {
  std::vector<int32_t> targets(rows);
  TestRandom random(seed);
  for (int32_t& t : targets) t = static_cast<int32_t>(random.Below(vocab));
  return targets;
}

CrossEntropyArgs ArgsOf(Case& c, int64_t rows, int64_t vocab, bool gradient) {
  return {.loss = c.Output<float>(rows),
          .z = c.Output<float>(rows),
          .logits = c.InOut<float>(rows * vocab),
          .targets = c.Values(Targets(rows, vocab, rows + vocab)),
          .rows = rows,
          .vocab = vocab,
          .scale = 0x1.8p-9f,
          .z_coefficient = 0x1.a36e2ep-14f,  // 1e-4
          .gradient = gradient};
}

KERNEL_CASES(CrossEntropy, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (bool gradient : {true, false}) {
      for (int64_t vocab : {1, 2, 7, 16, 17, 33, 64, 65, 255, 1000}) {
        Case& c =
            cases.New("3x" + std::to_string(vocab) + (gradient ? " gradient" : " loss only"), kind);
        c.Runs(ArgsOf(c, 3, vocab, gradient));
      }
      for (int64_t vocab : {kRun - 1, kRun, kRun + 1, 2 * kRun + 37}) {
        Case& c =
            cases.New("2x" + std::to_string(vocab) + (gradient ? " gradient" : " loss only"), kind);
        c.Runs(ArgsOf(c, 2, vocab, gradient));
      }
      Case& ignored = cases.New("ignored rows", kind);
      CrossEntropyArgs args = ArgsOf(ignored, 4, 50, gradient);
      args.targets = ignored.Values(std::vector<int32_t>{-1, 3, -1, 49});
      ignored.Runs(args);
    }
    // Gradient scales that meet every rule about tiny and huge factors.
    for (float scale : {0.0f, 1.0f, -1.0f, 0x1p-100f, 0x1p-124f, 0x1p120f, FromBits(0x7f800000u)}) {
      for (float z_coefficient : {0.0f, 0x1p-60f, 0x1p100f}) {
        Case& c = cases.New("scale " + std::to_string(Bits(scale)), kind);
        CrossEntropyArgs args = ArgsOf(c, 2, 100, true);
        args.scale = scale;
        args.z_coefficient = z_coefficient;
        c.Runs(args);
      }
    }
  }
  // Rows of one value, and of one value far above the rest.
  for (float value : {0.0f, 5.0f, -100.0f, 1e30f, FromBits(0xff800000u)}) {
    for (float peak : {0.0f, 90.0f}) {
      std::vector<float> x(3 * 70, value);
      for (int64_t i : {0, 100, 209}) x[i] += peak;
      Case& c = cases.New("flat", InputKind::kNormal);
      const CrossEntropyArgs args = ArgsOf(c, 3, 70, true);
      std::copy(x.begin(), x.end(), args.logits);
      c.Runs(args);
    }
  }
}

// One row in binary64, in the textbook's form.
struct Exact {
  double loss;
  double z;
  std::vector<double> gradient;
};
Exact ExactRow(const std::vector<double>& x, int32_t t, double scale, double z_coefficient) {
  double m = x[0];
  for (double v : x) m = std::max(m, v);
  double s = 0;
  for (double v : x) s += std::exp(v - m);
  const double lse = m + std::log(s);
  Exact exact = {.loss = lse - x[t], .z = lse * lse, .gradient = {}};
  for (size_t j = 0; j < x.size(); ++j) {
    const double p = std::exp(x[j] - lse);
    const bool is_target = static_cast<int32_t>(j) == t;
    exact.gradient.push_back(scale * ((is_target ? p - 1 : p) + z_coefficient * 2 * lse * p));
  }
  return exact;
}

double TotalLoss(const std::vector<double>& x, int32_t t, double scale, double z_coefficient) {
  const Exact exact = ExactRow(x, t, scale, z_coefficient);
  return scale * (exact.loss + z_coefficient * exact.z);
}

class CrossEntropyAccuracy : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Vocabularies, CrossEntropyAccuracy, ::testing::Values(2, 50, 4096, 16384));

TEST_P(CrossEntropyAccuracy, LossAndGradientAgreeWithBinary64AndFiniteDifferences) {
  const int64_t vocab = GetParam();
  constexpr float kScale = 0x1p-6f;
  constexpr float kZ = 1e-2f;
  TestRandom random(vocab);
  std::vector<float> x(vocab);
  for (float& v : x) v = static_cast<float>(random.Below(16001) - 8000) * 0x1p-10f;
  const int32_t t = static_cast<int32_t>(random.Below(vocab));
  std::vector<float> gradient = x;
  float loss;
  float z;
  ThreadPool pool(1);
  for (Isa isa : AvailableIsas()) {
    gradient = x;
    kernels::Run(Context{pool, KernelsFor(isa)}, CrossEntropyArgs{.loss = &loss,
                                                                  .z = &z,
                                                                  .logits = gradient.data(),
                                                                  .targets = &t,
                                                                  .rows = 1,
                                                                  .vocab = vocab,
                                                                  .scale = kScale,
                                                                  .z_coefficient = kZ,
                                                                  .gradient = true});
    std::vector<double> wide(x.begin(), x.end());
    const Exact exact = ExactRow(wide, t, kScale, kZ);
    EXPECT_NEAR(loss, exact.loss, 2e-6 * (1 + std::abs(exact.loss)));
    EXPECT_NEAR(z, exact.z, 2e-6 * (1 + exact.z));
    for (int64_t j = 0; j < vocab; ++j) {
      ASSERT_NEAR(gradient[j], exact.gradient[j],
                  2e-6 * std::abs(exact.gradient[j]) + 1e-8 * kScale)
          << j;
    }
    constexpr double kStep = 1e-5;
    for (int64_t j : {int64_t{0}, vocab / 2, vocab - 1, int64_t{t}}) {
      std::vector<double> up = wide;
      std::vector<double> down = wide;
      up[j] += kStep;
      down[j] -= kStep;
      const double slope =
          (TotalLoss(up, t, kScale, kZ) - TotalLoss(down, t, kScale, kZ)) / (2 * kStep);
      EXPECT_NEAR(gradient[j], slope, 1e-6 * kScale + 1e-5 * std::abs(slope)) << j;
    }
  }
}

TEST(CrossEntropy, GradientsOfARowSumToThatOfTheZLoss) {
  constexpr int64_t kVocab = 5000;
  std::vector<float> x(kVocab);
  FillInput(x.data(), kVocab, InputKind::kNormal, 4);
  const int32_t t = 77;
  float loss;
  float z;
  ThreadPool pool(1);
  kernels::Run(Context{pool, KernelsFor(Isa::kReference)}, CrossEntropyArgs{.loss = &loss,
                                                                            .z = &z,
                                                                            .logits = x.data(),
                                                                            .targets = &t,
                                                                            .rows = 1,
                                                                            .vocab = kVocab,
                                                                            .scale = 1.0f,
                                                                            .z_coefficient = 0.5f,
                                                                            .gradient = true});
  double sum = 0;
  for (float v : x) sum += v;
  EXPECT_NEAR(sum, std::sqrt(z), 1e-5 * std::sqrt(z));  // 2 * 0.5 * lse
}

}  // namespace
}  // namespace lockstep::kernels
