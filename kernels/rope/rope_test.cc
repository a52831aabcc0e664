// SPDX-License-Identifier: Apache-2.0
//
// Conformance, accuracy and gradients of the rotary position embedding.
#include "kernels/rope/rope.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/gradients.h"

namespace lockstep::kernels {
namespace {

KERNEL_CASES(Rope, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (InputKind table : {InputKind::kNormal, kind}) {
      for (int64_t d_head : {2, 6, 16, 34, 62, 64, 66, 96, 128, 256}) {
        for (bool backward : {false, true}) {
          constexpr int64_t kTokens = 7;
          constexpr int64_t kSequence = 5;
          const int64_t heads = d_head == 64 ? 3 : 1;
          const int64_t stride = heads * d_head + (d_head == 96 ? 11 : 0);
          Case& c = cases.New("d_head " + std::to_string(d_head), kind);
          c.Runs(RopeArgs{.out = c.InOut<BFloat16>(kTokens * stride),
                          .x = c.Input<BFloat16>(kTokens * stride),
                          .cos = c.Input<float>(kSequence * d_head / 2, table),
                          .sin = c.Input<float>(kSequence * d_head / 2, table),
                          .tokens = kTokens,
                          .heads = heads,
                          .d_head = d_head,
                          .out_stride = stride,
                          .x_stride = stride,
                          .sequence = kSequence,
                          .backward = backward});
        }
      }
    }
    Case& c = cases.New("in place", kind);
    BFloat16* x = c.InOut<BFloat16>(3 * 400);
    c.Runs(RopeArgs{.out = x + 8,
                    .x = x + 8,
                    .cos = c.Input<float>(3 * 64, InputKind::kNormal),
                    .sin = c.Input<float>(3 * 64, InputKind::kNormal),
                    .tokens = 3,
                    .heads = 2,
                    .d_head = 128,
                    .out_stride = 400,
                    .x_stride = 400,
                    .sequence = 8,
                    .backward = false});
  }
}

constexpr int64_t kHead = 64;
constexpr int64_t kPositions = 40;
constexpr double kTheta = 10000.0;

struct Table {
  std::vector<float> cos = std::vector<float>(kPositions * kHead / 2);
  std::vector<float> sin = std::vector<float>(kPositions * kHead / 2);
  Table() { BuildRopeTable(kTheta, kHead, kPositions, cos.data(), sin.data()); }
};

TEST(Rope, TableAgreesWithFloat64) {
  const Table table;
  for (int64_t p = 0; p < kPositions; ++p) {
    for (int64_t i = 0; i < kHead / 2; ++i) {
      const double angle = static_cast<double>(p) * std::pow(kTheta, -2.0 * i / kHead);
      EXPECT_NEAR(table.cos[p * kHead / 2 + i], std::cos(angle), 1e-7);
      EXPECT_NEAR(table.sin[p * kHead / 2 + i], std::sin(angle), 1e-7);
    }
  }
  EXPECT_EQ(table.cos[0], 1.0f);
  EXPECT_EQ(table.sin[0], 0.0f);
}

// One head at `position` in float64, as a complex product.
std::vector<double> Rotated(const std::vector<double>& x, double position) {
  std::vector<double> y(kHead);
  for (int64_t i = 0; i < kHead / 2; ++i) {
    const double angle = position * std::pow(kTheta, -2.0 * i / kHead);
    y[i] = x[i] * std::cos(angle) - x[i + kHead / 2] * std::sin(angle);
    y[i + kHead / 2] = x[i] * std::sin(angle) + x[i + kHead / 2] * std::cos(angle);
  }
  return y;
}

TEST(Rope, AgreesWithFloat64) {
  const Table table;
  const auto x = NormalInput<BFloat16>(kPositions * kHead, 1);
  std::vector<BFloat16> y(x.size());
  std::vector<BFloat16> dx(x.size());
  ThreadPool pool(1);
  const Context context{pool, KernelsFor(Isa::kReference)};
  RopeArgs args = {
      y.data(),   x.data(), table.cos.data(), table.sin.data(), kPositions, 1, kHead, kHead, kHead,
      kPositions, false};
  kernels::Run(context, args);
  args.out = dx.data();
  args.backward = true;
  kernels::Run(context, args);  // x as the gradient dy
  for (int64_t p = 0; p < kPositions; ++p) {
    const std::vector<double> in =
        ToDoubles(std::vector<BFloat16>(x.begin() + p * kHead, x.begin() + (p + 1) * kHead));
    const std::vector<BFloat16> out(y.begin() + p * kHead, y.begin() + (p + 1) * kHead);
    EXPECT_LT(LargestError(ToDoubles(out), Rotated(in, static_cast<double>(p))), 0x1p-8 + 1e-6);
    const std::vector<double> differences = FiniteDifferences(
        [&](const std::vector<double>& at) {
          const std::vector<double> rotated = Rotated(at, static_cast<double>(p));
          double loss = 0.0;
          for (int64_t i = 0; i < kHead; ++i) loss += in[i] * rotated[i];
          return loss;
        },
        std::vector<double>(kHead, 0.5));
    const std::vector<double> gradient = Rotated(in, -static_cast<double>(p));
    EXPECT_LT(LargestError(differences, gradient), 1e-9);
    const std::vector<BFloat16> back(dx.begin() + p * kHead, dx.begin() + (p + 1) * kHead);
    EXPECT_LT(LargestError(ToDoubles(back), gradient), 0x1p-8 + 1e-6);
  }
}

}  // namespace
}  // namespace lockstep::kernels
