// SPDX-License-Identifier: Apache-2.0
//
// Conformance, accuracy and gradients of RMSNorm.
#include "kernels/rms_norm/rms_norm.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/gradients.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kCols[] = {1, 5, 31, 32, 33, 63, 64, 65, 128, 4095, 4096, 4097};
enum class Gain { kNone, kF32, kBf16 };
constexpr Gain kGains[] = {Gain::kNone, Gain::kF32, Gain::kBf16};

ConstElements MakeGain(Case& c, Gain gain, int64_t cols) {
  if (gain == Gain::kF32) return c.Input<float>(cols);
  if (gain == Gain::kBf16) return c.Input<BFloat16>(cols);
  return {};
}

// A shape, and the stride of its tokens.
struct Shape {
  int64_t tokens;
  int64_t heads;
  int64_t cols;
  int64_t stride;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes = {{0, 1, 32, 32}, {3, 4, 64, 300}, {5, 2, 128, 256}};
  for (int64_t cols : kCols) shapes.push_back({2, 1, cols, cols});
  return shapes;
}
std::string NameOf(const Shape& s) {
  return std::to_string(s.tokens) + " x " + std::to_string(s.heads) + " x " +
         std::to_string(s.cols);
}

KERNEL_CASES(RmsNormForward, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : Shapes()) {
      for (Gain gain : kGains) {
        Case& c = cases.New(NameOf(s), kind);
        // The gaps between strided heads must stay as they are, so y is filled before each run.
        c.Runs(RmsNormForwardArgs{.y = c.InOut<BFloat16>(s.tokens * s.stride),
                                  .rstd = c.Output<float>(s.tokens * s.heads),
                                  .x = c.Input<BFloat16>(s.tokens * s.stride),
                                  .gain = MakeGain(c, gain, s.cols),
                                  .tokens = s.tokens,
                                  .heads = s.heads,
                                  .cols = s.cols,
                                  .y_stride = s.stride,
                                  .x_stride = s.stride,
                                  .inv_cols = RmsNormInverse(s.cols),
                                  .eps = gain == Gain::kBf16 ? 0x1p-100f : 1e-5f});
      }
    }
    Case& c = cases.New("in place", kind);
    BFloat16* x = c.InOut<BFloat16>(4 * 200);
    c.Runs(RmsNormForwardArgs{.y = x,
                              .rstd = c.Output<float>(4),
                              .x = x,
                              .gain = MakeGain(c, Gain::kF32, 200),
                              .tokens = 4,
                              .heads = 1,
                              .cols = 200,
                              .y_stride = 200,
                              .x_stride = 200,
                              .inv_cols = RmsNormInverse(200),
                              .eps = 1e-5f});
  }
}

KERNEL_CASES(RmsNormBackward, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (InputKind rstd : {InputKind::kNormal, kind}) {
      for (const Shape& s : Shapes()) {
        for (Gain gain : kGains) {
          Case& c = cases.New(NameOf(s), kind);
          c.Runs(RmsNormBackwardArgs{.dx = c.InOut<BFloat16>(s.tokens * s.stride),
                                     .dy = c.Input<BFloat16>(s.tokens * s.stride),
                                     .x = c.Input<BFloat16>(s.tokens * s.stride),
                                     .rstd = c.Input<float>(s.tokens * s.heads, rstd),
                                     .gain = MakeGain(c, gain, s.cols),
                                     .tokens = s.tokens,
                                     .heads = s.heads,
                                     .cols = s.cols,
                                     .dx_stride = s.stride,
                                     .dy_stride = s.stride,
                                     .x_stride = s.stride,
                                     .inv_cols = RmsNormInverse(s.cols)});
        }
      }
    }
  }
}

KERNEL_CASES(RmsNormGainGradient, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : {Shape{0, 1, 5, 5}, Shape{1, 1, 33, 33}, Shape{255, 1, 17, 17},
                           Shape{256, 1, 40, 40}, Shape{259, 1, 64, 70}, Shape{150, 4, 9, 50}}) {
      Case& c = cases.New(NameOf(s), kind);
      const RmsNormGainGradientArgs args = {.dgain = c.Output<float>(s.cols),
                                            .dy = c.Input<BFloat16>(s.tokens * s.stride),
                                            .x = c.Input<BFloat16>(s.tokens * s.stride),
                                            .rstd = c.Input<float>(s.tokens * s.heads),
                                            .tokens = s.tokens,
                                            .heads = s.heads,
                                            .cols = s.cols,
                                            .dy_stride = s.stride,
                                            .x_stride = s.stride};
      c.Calls([args](const Context& context) { RmsNormGainGradient(context, args); });
    }
  }
}

// One row in float64: sum of dy_i * gain_i * x_i / rms(x).
double Loss(const std::vector<double>& x, const std::vector<double>& gain,
            const std::vector<double>& dy, double eps) {
  double squares = 0.0;
  double sum = 0.0;
  for (double value : x) squares += value * value;
  for (size_t i = 0; i < x.size(); ++i) sum += dy[i] * gain[i] * x[i];
  return sum / std::sqrt(squares / static_cast<double>(x.size()) + eps);
}

// The gradient of Loss by the Jacobian of x / rms(x), element by element.
std::vector<double> Gradient(const std::vector<double>& x, const std::vector<double>& gain,
                             const std::vector<double>& dy, double eps) {
  const double n = static_cast<double>(x.size());
  double squares = 0.0;
  for (double value : x) squares += value * value;
  const double rms = std::sqrt(squares / n + eps);
  std::vector<double> dx(x.size(), 0.0);
  for (size_t j = 0; j < x.size(); ++j) {
    for (size_t i = 0; i < x.size(); ++i) {
      dx[i] += dy[j] * gain[j] * ((i == j ? 1 / rms : 0.0) - x[i] * x[j] / (n * rms * rms * rms));
    }
  }
  return dx;
}

TEST(RmsNorm, AgreesWithFloat64) {
  constexpr int64_t kSize = 48;
  constexpr float kEps = 1e-5f;
  const auto x = NormalInput<BFloat16>(kSize, 1);
  const auto dy = NormalInput<BFloat16>(kSize, 2);
  const auto gain = NormalInput<float>(kSize, 3);
  std::vector<BFloat16> y(kSize);
  std::vector<BFloat16> dx(kSize);
  std::vector<float> dgain(kSize);
  float rstd;
  ThreadPool pool(1);
  const Context context{pool, KernelsFor(Isa::kReference)};
  kernels::Run(context, RmsNormForwardArgs{y.data(), &rstd, x.data(), gain.data(), 1, 1, kSize,
                                           kSize, kSize, RmsNormInverse(kSize), kEps});
  kernels::Run(context, RmsNormBackwardArgs{dx.data(), dy.data(), x.data(), &rstd, gain.data(), 1,
                                            1, kSize, kSize, kSize, kSize, RmsNormInverse(kSize)});
  RmsNormGainGradient(context, RmsNormGainGradientArgs{dgain.data(), dy.data(), x.data(), &rstd, 1,
                                                       1, kSize, kSize, kSize});

  const std::vector<double> x64 = ToDoubles(x);
  const std::vector<double> dy64 = ToDoubles(dy);
  const std::vector<double> gain64 = ToDoubles(gain);
  const std::vector<double> gradient = Gradient(x64, gain64, dy64, kEps);
  const std::vector<double> differences = FiniteDifferences(
      [&](const std::vector<double>& at) { return Loss(at, gain64, dy64, kEps); }, x64);
  EXPECT_LT(LargestError(differences, gradient), 1e-8);
  EXPECT_LT(LargestError(ToDoubles(dx), gradient), 0x1p-8 + 1e-5);  // bf16's half ulp

  std::vector<double> y64(kSize);
  double squares = 0.0;
  for (double value : x64) squares += value * value;
  const double rms = std::sqrt(squares / kSize + kEps);
  for (int64_t i = 0; i < kSize; ++i) y64[i] = x64[i] / rms * gain64[i];
  EXPECT_LT(LargestError(ToDoubles(y), y64), 0x1p-8 + 1e-6);
  EXPECT_LT(std::abs(rstd * rms - 1), 1e-6);

  const std::vector<double> gain_differences = FiniteDifferences(
      [&](const std::vector<double>& at) { return Loss(x64, at, dy64, kEps); }, gain64);
  EXPECT_LT(LargestError(ToDoubles(dgain), gain_differences), 1e-6);
}

TEST(RmsNorm, KnownValues) {
  // Mean square of 3 and 4 is 12.5; with eps 3.5, rms = 4 exactly.
  const BFloat16 x[2] = {{0x4040}, {0x4080}};
  BFloat16 y[2];
  float rstd;
  ThreadPool pool(1);
  kernels::Run(Context{pool, KernelsFor(Isa::kReference)},
               RmsNormForwardArgs{y, &rstd, x, {}, 1, 1, 2, 2, 2, RmsNormInverse(2), 3.5f});
  EXPECT_EQ(rstd, 0.25f);
  EXPECT_EQ(y[0].bits, 0x3f40);  // 0.75
  EXPECT_EQ(y[1].bits, 0x3f80);  // 1
}

}  // namespace
}  // namespace lockstep::kernels
