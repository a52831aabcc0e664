// SPDX-License-Identifier: Apache-2.0
//
// Conformance of AdamW, and its steps against float64.
#include "kernels/adamw/adamw.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/gradients.h"

namespace lockstep::kernels {
namespace {

constexpr double kLr = 1e-3;
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.95;
constexpr double kEps = 1e-8;
constexpr double kDecay = 0.1;

KERNEL_CASES(AdamW, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (InputKind moments : {kind, InputKind::kNormal}) {
      for (int64_t count : {1, 3, 8, 15, 16, 17, 33, 500}) {
        for (int types : {1, 2, 3}) {
          Case& c = cases.New(std::to_string(count) + " elements", kind);
          float* v = c.InOut<float>(count, moments);
          // The second moment of a run is never negative.
          for (int64_t i = 0; i < count; ++i) v[i] = Abs(v[i]);
          c.Runs(AdamWArgs{.p_f32 = types & 1 ? c.InOut<float>(count) : nullptr,
                           .p_bf16 = types & 2 ? c.InOut<BFloat16>(count) : nullptr,
                           .m = c.InOut<float>(count, moments),
                           .v = v,
                           .g = c.Input<float>(count),
                           .count = count,
                           .scalars = AdamWScalarsAt(3, kLr, kBeta1, kBeta2, kEps, kDecay),
                           .clip_scale = 0.7f});
        }
      }
    }
  }
}

TEST(AdamW, ScalarsAgreeWithFloat64) {
  for (int64_t step : {1, 2, 15, 1000, 100000}) {
    const AdamWScalars s = AdamWScalarsAt(step, kLr, kBeta1, kBeta2, kEps, kDecay);
    EXPECT_EQ(s.lr, static_cast<float>(kLr));
    EXPECT_EQ(s.one_minus_beta2, static_cast<float>(1 - kBeta2));
    const double t = static_cast<double>(step);
    EXPECT_NEAR(s.correction1 * (1 - std::pow(kBeta1, t)), 1.0, 1e-7);
    EXPECT_NEAR(s.correction2 * (1 - std::pow(kBeta2, t)), 1.0, 1e-7);
  }
}

TEST(AdamW, StepsAgreeWithFloat64) {
  constexpr int64_t kCount = 40;
  auto p = NormalInput<float>(kCount, 1);
  std::vector<float> m(kCount, 0.0f);
  std::vector<float> v(kCount, 0.0f);
  std::vector<double> p64 = ToDoubles(p);
  std::vector<double> m64(kCount, 0.0);
  std::vector<double> v64(kCount, 0.0);
  ThreadPool pool(1);
  const Context context{pool, KernelsFor(Isa::kReference)};
  for (int64_t step = 1; step <= 20; ++step) {
    const auto g = NormalInput<float>(kCount, 100 + step);
    kernels::Run(context,
                 AdamWArgs{.p_f32 = p.data(),
                           .p_bf16 = nullptr,
                           .m = m.data(),
                           .v = v.data(),
                           .g = g.data(),
                           .count = kCount,
                           .scalars = AdamWScalarsAt(step, kLr, kBeta1, kBeta2, kEps, kDecay),
                           .clip_scale = 0.5f});
    for (int64_t i = 0; i < kCount; ++i) {
      const double gradient = 0.5 * g[i];
      m64[i] = kBeta1 * m64[i] + (1 - kBeta1) * gradient;
      v64[i] = kBeta2 * v64[i] + (1 - kBeta2) * gradient * gradient;
      const double mhat = m64[i] / (1 - std::pow(kBeta1, step));
      const double vhat = v64[i] / (1 - std::pow(kBeta2, step));
      p64[i] -= kLr * (mhat / (std::sqrt(vhat) + kEps) + kDecay * p64[i]);
    }
  }
  EXPECT_LT(LargestError(ToDoubles(p), p64), 1e-6);
  EXPECT_LT(LargestError(ToDoubles(m), m64), 1e-6);
  EXPECT_LT(LargestError(ToDoubles(v), v64), 1e-6);
}

}  // namespace
}  // namespace lockstep::kernels
