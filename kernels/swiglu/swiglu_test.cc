// SPDX-License-Identifier: Apache-2.0
//
// Conformance, accuracy and gradients of SwiGLU.
#include "kernels/swiglu/swiglu.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/swiglu/swiglu_formula.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/gradients.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kWidths[] = {1, 3, 8, 15, 16, 17, 31, 32, 33, 64, 130};

KERNEL_CASES(SwigluForward, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t width : kWidths) {
      Case& c = cases.New("3 x " + std::to_string(width), kind);
      c.Runs(SwigluForwardArgs{.out = c.Output<BFloat16>(3 * width),
                               .x = c.Input<BFloat16>(3 * 2 * width),
                               .rows = 3,
                               .width = width});
    }
  }
}

KERNEL_CASES(SwigluBackward, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t width : kWidths) {
      Case& c = cases.New("3 x " + std::to_string(width), kind);
      c.Runs(SwigluBackwardArgs{.dx = c.Output<BFloat16>(3 * 2 * width),
                                .dout = c.Input<BFloat16>(3 * width),
                                .x = c.Input<BFloat16>(3 * 2 * width),
                                .rows = 3,
                                .width = width});
    }
    Case& c = cases.New("in place", kind);
    BFloat16* x = c.InOut<BFloat16>(4 * 100);
    c.Runs(SwigluBackwardArgs{
        .dx = x, .dout = c.Input<BFloat16>(4 * 50), .x = x, .rows = 4, .width = 50});
  }
}

// Every gate there is, with an up of 1 and of a tiny and a large number: what the other kinds of
// input reach by chance only.
std::vector<BFloat16> EveryGate(uint16_t up_bits) {
  std::vector<BFloat16> x(2 * 65536);
  for (int32_t g = 0; g < 65536; ++g) {
    Store(&x[g], ToFloat(BFloat16{static_cast<uint16_t>(g)}));
    x[65536 + g] = BFloat16{up_bits};
  }
  return x;
}

KERNEL_CASES(SwigluForwardEveryGate, cases) {
  for (uint16_t up : {0x3f80, 0x0200, 0x7e00}) {
    Case& c = cases.New("up " + std::to_string(up), InputKind::kNormal);
    c.Runs(SwigluForwardArgs{
        .out = c.Output<BFloat16>(65536), .x = c.Values(EveryGate(up)), .rows = 1, .width = 65536});
  }
}

KERNEL_CASES(SwigluBackwardEveryGate, cases) {
  for (uint16_t up : {0x3f80, 0x0200, 0x7e00}) {
    Case& c = cases.New("up " + std::to_string(up), InputKind::kNormal);
    c.Runs(SwigluBackwardArgs{.dx = c.Output<BFloat16>(2 * 65536),
                              .dout = c.Values(std::vector<BFloat16>(65536, BFloat16{up})),
                              .x = c.Values(EveryGate(up)),
                              .rows = 1,
                              .width = 65536});
  }
}

double Silu(double g) { return g / (1 + std::exp(-g)); }

TEST(Swiglu, SiluIsAccurateForEveryGate) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float g = ToFloat(BFloat16{static_cast<uint16_t>(bits)});
    if (!(g >= -80.0f) || g > 0x1p126f || Abs(g) < kCanonBound) continue;
    const double want = Silu(g);
    EXPECT_LT(std::abs(SwigluOutV<Scalar>(g, 1.0f) - want), std::abs(want) * 0x1p-15) << g;
  }
  EXPECT_LT(std::abs(SwigluOutV<Scalar>(-1e30f, 1.0f)), 0x1p-108f);
  EXPECT_EQ(SwigluOutV<Scalar>(0.0f, 1.0f), 0.0f);
  EXPECT_EQ(SwigluOutV<Scalar>(INFINITY, 1.0f), INFINITY);
  EXPECT_TRUE(std::isnan(SwigluOutV<Scalar>(NAN, 1.0f)));
}

TEST(Swiglu, AgreesWithFloat64) {
  constexpr int64_t kWidth = 64;
  const auto x = NormalInput<BFloat16>(2 * kWidth, 1);
  const auto dout = NormalInput<BFloat16>(kWidth, 2);
  std::vector<BFloat16> out(kWidth);
  std::vector<BFloat16> dx(2 * kWidth);
  ThreadPool pool(1);
  const Context context{pool, KernelsFor(Isa::kReference)};
  kernels::Run(context, SwigluForwardArgs{out.data(), x.data(), 1, kWidth});
  kernels::Run(context, SwigluBackwardArgs{dx.data(), dout.data(), x.data(), 1, kWidth});

  const std::vector<double> x64 = ToDoubles(x);
  const std::vector<double> dout64 = ToDoubles(dout);
  std::vector<double> out64(kWidth);
  std::vector<double> dx64(2 * kWidth);
  for (int64_t i = 0; i < kWidth; ++i) {
    const double g = x64[i];
    const double u = x64[kWidth + i];
    const double s = 1 / (1 + std::exp(-g));
    out64[i] = g * s * u;
    dx64[i] = dout64[i] * u * s * (1 + g * (1 - s));
    dx64[kWidth + i] = dout64[i] * g * s;
  }
  const std::vector<double> differences = FiniteDifferences(
      [&](const std::vector<double>& at) {
        double loss = 0.0;
        for (int64_t i = 0; i < kWidth; ++i) loss += dout64[i] * Silu(at[i]) * at[kWidth + i];
        return loss;
      },
      x64);
  EXPECT_LT(LargestError(differences, dx64), 1e-8);
  EXPECT_LT(LargestError(ToDoubles(out), out64), 0x1p-8 + 0x1p-15);
  EXPECT_LT(LargestError(ToDoubles(dx), dx64), 0x1p-8 + 0x1p-15);
}

}  // namespace
}  // namespace lockstep::kernels
