// SPDX-License-Identifier: Apache-2.0
//
// The int8 linear layer: conformance, the definition written out once more on plain arrays, and the
// accuracy of its gradients against binary64 with and without rotation.
#include "kernels/linear_i8/linear_i8.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/gemm_i8/dequantize.h"
#include "kernels/gemm_i8/gemm_i8.h"
#include "kernels/quantize/quantize.h"
#include "kernels/quantize/weights.h"
#include "kernels/testing/conformance.h"

namespace lockstep::kernels {
namespace {

struct Shape {
  int64_t tokens;
  int64_t outputs;
  int64_t inputs;
};
const Shape kShapes[] = {{1, 1, 1}, {3, 5, 7}, {8, 48, 65}, {20, 33, 16}, {128, 6, 40}};

std::string Name(const Shape& s) {
  return std::to_string(s.tokens) + " tokens, " + std::to_string(s.inputs) + " to " +
         std::to_string(s.outputs);
}

// The weights of a case, quantised by the reference.
struct Prepared {
  template <class T>
  Prepared(const T* w, int64_t outputs, int64_t inputs)
      : q(outputs * inputs),
        step(outputs),
        clipped(outputs),
        q_rotated(outputs * inputs),
        scale_rotated(inputs) {
    static auto* pool = new ThreadPool(1);
    PrepareLinearI8(Context{*pool, KernelsFor(Isa::kReference)},
                    {.q = q.data(),
                     .step = step.data(),
                     .clipped = clipped.data(),
                     .q_rotated = q_rotated.data(),
                     .scale_rotated = scale_rotated.data(),
                     .w = w,
                     .outputs = outputs,
                     .inputs = inputs});
  }

  std::vector<int8_t> q;
  std::vector<float> step;
  std::vector<int32_t> clipped;
  std::vector<int8_t> q_rotated;
  std::vector<float> scale_rotated;
};

template <class T>
void PrepareCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : kShapes) {
      Case& c = cases.New(Name(s) + " " + type, kind);
      const PrepareLinearI8Args args = {.q = c.Output<int8_t>(s.outputs * s.inputs),
                                        .step = c.Output<float>(s.outputs),
                                        .clipped = c.Output<int32_t>(s.outputs),
                                        .q_rotated = c.Output<int8_t>(s.outputs * s.inputs),
                                        .scale_rotated = c.Output<float>(s.inputs),
                                        .w = c.Input<T>(s.outputs * s.inputs),
                                        .outputs = s.outputs,
                                        .inputs = s.inputs};
      c.Calls([args](const Context& context) { PrepareLinearI8(context, args); });
    }
  }
}
KERNEL_CASES(PrepareLinearI8, cases) {
  PrepareCases<BFloat16>(cases, "bf16");
  PrepareCases<float>(cases, "f32");
}

KERNEL_CASES(LinearI8, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : kShapes) {
      Case& c = cases.New(Name(s), kind);
      const LinearI8Args args = {.y = c.Output<BFloat16>(s.tokens * s.outputs),
                                 .xq = c.Input<int8_t>(s.tokens * s.inputs),
                                 .x_step = c.Input<float>(1),
                                 .q = c.Input<int8_t>(s.outputs * s.inputs),
                                 .step = c.Input<float>(s.outputs),
                                 .tokens = s.tokens,
                                 .outputs = s.outputs,
                                 .inputs = s.inputs};
      c.Calls([args](const Context& context) { LinearI8(context, args); });
      c.Reference([args] {
        for (int64_t n = 0; n < args.tokens; ++n) {
          for (int64_t o = 0; o < args.outputs; ++o) {
            int32_t p = 0;
            for (int64_t k = 0; k < args.inputs; ++k) {
              p += args.xq[n * args.inputs + k] * args.q[o * args.inputs + k];
            }
            Store(&args.y[n * args.outputs + o], Dequantize(p, *args.x_step, args.step[o]));
          }
        }
      });
    }
  }
}

KERNEL_CASES(LinearI8InputGradient, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : kShapes) {
      Case& c = cases.New(Name(s), kind);
      const LinearI8InputGradientArgs args = {
          .dx = c.Output<BFloat16>(s.tokens * s.inputs),
          .dy = c.Input<BFloat16>(s.tokens * s.outputs),
          .q_rotated = c.Input<int8_t>(s.outputs * s.inputs),
          .scale_rotated = c.Input<float>(s.inputs, InputKind::kNormal),
          .tokens = s.tokens,
          .outputs = s.outputs,
          .inputs = s.inputs};
      c.Calls([args](const Context& context) { LinearI8InputGradient(context, args); });
    }
  }
}

// Weights with one far out in every other row.
std::vector<float> Weights(const Shape& s, uint64_t seed) {
  std::vector<float> w(s.outputs * s.inputs);
  FillInput(w.data(), w.size(), InputKind::kNormal, seed);
  TestRandom random(seed);
  for (int64_t o = 0; o < s.outputs; o += 2) w[o * s.inputs + random.Below(s.inputs)] = 500.0f;
  return w;
}

KERNEL_CASES(LinearI8WeightGradient, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : kShapes) {
      Case& c = cases.New(Name(s), kind);
      const std::vector<float> w = Weights(s, 5);
      const Prepared prepared(w.data(), s.outputs, s.inputs);
      const LinearI8WeightGradientArgs args = {.dw = c.Output<float>(s.outputs * s.inputs),
                                               .dy = c.Input<BFloat16>(s.tokens * s.outputs),
                                               .xq = c.Input<int8_t>(s.tokens * s.inputs),
                                               .x_step = c.Input<float>(1),
                                               .w = c.Values(w),
                                               .step = c.Values(prepared.step),
                                               .clipped = c.Values(prepared.clipped),
                                               .tokens = s.tokens,
                                               .outputs = s.outputs,
                                               .inputs = s.inputs};
      c.Calls([args](const Context& context) { LinearI8WeightGradient(context, args); });
    }
  }
}

TEST(RotationBlock, IsTheLargestPowerOfTwoUpTo256) {
  EXPECT_EQ(RotationBlock(1), 1);
  EXPECT_EQ(RotationBlock(7), 1);
  EXPECT_EQ(RotationBlock(704), 64);
  EXPECT_EQ(RotationBlock(5632), 256);
  EXPECT_EQ(RotationBlock(16384), 256);
}

// A layer with Gaussian-like data; in dy a few tokens have gradients many times the others', and in
// each of them a few channels: what plain int8 cannot hold with one step.
class LinearI8Accuracy : public ::testing::Test {
 protected:
  static constexpr Shape kShape = {512, 256, 192};

  LinearI8Accuracy()
      : w_(Weights(kShape, 3)),
        prepared_(w_.data(), kShape.outputs, kShape.inputs),
        x_(kShape.tokens * kShape.inputs),
        dy_(kShape.tokens * kShape.outputs),
        xq_(x_.size()) {
    TestRandom random(12);
    for (BFloat16& v : x_) Store(&v, Gaussian(random));
    for (BFloat16& v : dy_) Store(&v, 1e-4f * Gaussian(random));
    for (int64_t i = 0; i < 300; ++i) {
      BFloat16& outlier = dy_[random.Below(static_cast<int64_t>(dy_.size()))];
      Store(&outlier, 3e-3f * Gaussian(random));
    }
    QuantizeTensor(context_, {.q = xq_.data(),
                              .step = &x_step_,
                              .x = x_.data(),
                              .count = static_cast<int64_t>(x_.size())});
  }

  // A sum of uniform values.
  static float Gaussian(TestRandom& random) {
    int64_t sum = 0;
    for (int i = 0; i < 12; ++i) sum += random.Below(1 << 16);
    return static_cast<float>(sum - 6 * (1 << 16)) * 0x1p-16f;
  }

  double WeightAt(int64_t o, int64_t k) const {
    return static_cast<double>(prepared_.step[o]) * prepared_.q[o * kShape.inputs + k];
  }
  bool Clipped(int64_t o, int64_t k) const {
    return std::abs(static_cast<double>(w_[o * kShape.inputs + k])) / prepared_.step[o] >= 127.5;
  }

  // The straight-through gradients in binary64.
  std::vector<double> ExactDx() const {
    std::vector<double> dx(kShape.tokens * kShape.inputs);
    for (int64_t n = 0; n < kShape.tokens; ++n) {
      for (int64_t o = 0; o < kShape.outputs; ++o) {
        const double g = ToFloat(dy_[n * kShape.outputs + o]);
        for (int64_t k = 0; k < kShape.inputs; ++k) {
          dx[n * kShape.inputs + k] += g * WeightAt(o, k);
        }
      }
    }
    return dx;
  }
  std::vector<double> ExactDw(bool mask) const {
    std::vector<double> dw(kShape.outputs * kShape.inputs);
    for (int64_t n = 0; n < kShape.tokens; ++n) {
      for (int64_t o = 0; o < kShape.outputs; ++o) {
        const double g = ToFloat(dy_[n * kShape.outputs + o]);
        for (int64_t k = 0; k < kShape.inputs; ++k) {
          if (mask && Clipped(o, k)) continue;
          dw[o * kShape.inputs + k] += g * x_step_ * xq_[n * kShape.inputs + k];
        }
      }
    }
    return dw;
  }
  static double Value(float v) { return v; }
  static double Value(BFloat16 v) { return ToFloat(v); }
  template <class T>
  static double RelativeError(const std::vector<T>& got, const std::vector<double>& exact) {
    double error = 0;
    double size = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      error += (Value(got[i]) - exact[i]) * (Value(got[i]) - exact[i]);
      size += exact[i] * exact[i];
    }
    return std::sqrt(error / size);
  }

  ThreadPool pool_{1};
  Context context_{pool_, KernelsFor(AvailableIsas().back())};
  std::vector<float> w_;
  Prepared prepared_;
  std::vector<BFloat16> x_;
  std::vector<BFloat16> dy_;
  std::vector<int8_t> xq_;
  float x_step_ = 0.0f;
};

TEST_F(LinearI8Accuracy, ForwardIsTheProductOfTheQuantisedFactors) {
  std::vector<BFloat16> y(kShape.tokens * kShape.outputs);
  LinearI8(context_, {.y = y.data(),
                      .xq = xq_.data(),
                      .x_step = &x_step_,
                      .q = prepared_.q.data(),
                      .step = prepared_.step.data(),
                      .tokens = kShape.tokens,
                      .outputs = kShape.outputs,
                      .inputs = kShape.inputs});
  for (int64_t n = 0; n < kShape.tokens; ++n) {
    for (int64_t o = 0; o < kShape.outputs; ++o) {
      double exact = 0;
      for (int64_t k = 0; k < kShape.inputs; ++k) {
        exact += static_cast<double>(x_step_) * xq_[n * kShape.inputs + k] * WeightAt(o, k);
      }
      ASSERT_NEAR(ToFloat(y[n * kShape.outputs + o]), exact, 0x1.02p-8 * std::abs(exact) + 1e-12);
    }
  }
}

TEST_F(LinearI8Accuracy, RotationKeepsTheInputGradientWithinAFewPercent) {
  const std::vector<double> exact = ExactDx();
  std::vector<BFloat16> dx(exact.size());
  LinearI8InputGradient(context_, {.dx = dx.data(),
                                   .dy = dy_.data(),
                                   .q_rotated = prepared_.q_rotated.data(),
                                   .scale_rotated = prepared_.scale_rotated.data(),
                                   .tokens = kShape.tokens,
                                   .outputs = kShape.outputs,
                                   .inputs = kShape.inputs});
  const double rotated = RelativeError(dx, exact);

  // The same without rotation: the columns of ŵ and the rows of dy quantised as they are.
  std::vector<float> weights(prepared_.q.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = prepared_.step[i / kShape.inputs] * prepared_.q[i];
  }
  std::vector<int8_t> g(dy_.size()), wq(weights.size());
  std::vector<float> g_scale(kShape.tokens), w_scale(kShape.inputs);
  kernels::Run(context_, QuantizeRowsArgs{.q = g.data(),
                                          .scale = g_scale.data(),
                                          .x = dy_.data(),
                                          .rows = kShape.tokens,
                                          .cols = kShape.outputs});
  kernels::Run(context_, QuantizeColumnsArgs{.q = wq.data(),
                                             .scale = w_scale.data(),
                                             .x = weights.data(),
                                             .rows = kShape.outputs,
                                             .cols = kShape.inputs});
  GemmI8(context_, {.out_bf16 = dx.data(),
                    .ld_out = kShape.inputs,
                    .a = g.data(),
                    .lda = kShape.outputs,
                    .transpose_a = false,
                    .b = wq.data(),
                    .ldb = kShape.inputs,
                    .transpose_b = false,
                    .row_scale = {g_scale.data(), false},
                    .col_scale = {w_scale.data(), false},
                    .m = kShape.tokens,
                    .n = kShape.inputs,
                    .k = kShape.outputs});
  const double plain = RelativeError(dx, exact);
  RecordProperty("relative_error_rotated", std::to_string(rotated));
  RecordProperty("relative_error_plain", std::to_string(plain));
  printf("input gradient: relative error %.4f rotated, %.4f plain\n", rotated, plain);
  EXPECT_LT(rotated, 0.015);
  EXPECT_GT(plain, 2 * rotated);
}

TEST_F(LinearI8Accuracy, RotationKeepsTheWeightGradientWithinAFewPercent) {
  std::vector<float> dw(w_.size());
  LinearI8WeightGradient(context_, {.dw = dw.data(),
                                    .dy = dy_.data(),
                                    .xq = xq_.data(),
                                    .x_step = &x_step_,
                                    .w = w_.data(),
                                    .step = prepared_.step.data(),
                                    .clipped = prepared_.clipped.data(),
                                    .tokens = kShape.tokens,
                                    .outputs = kShape.outputs,
                                    .inputs = kShape.inputs});
  int64_t masked = 0;
  for (int64_t o = 0; o < kShape.outputs; ++o) {
    for (int64_t k = 0; k < kShape.inputs; ++k) {
      if (!Clipped(o, k)) continue;
      EXPECT_EQ(Bits(dw[o * kShape.inputs + k]), 0u);
      ++masked;
    }
  }
  EXPECT_EQ(masked, kShape.outputs / 2);
  const double rotated = RelativeError(dw, ExactDw(true));

  std::vector<int8_t> g(dy_.size());
  std::vector<float> g_scale(kShape.outputs);
  kernels::Run(context_, QuantizeColumnsArgs{.q = g.data(),
                                             .scale = g_scale.data(),
                                             .x = dy_.data(),
                                             .rows = kShape.tokens,
                                             .cols = kShape.outputs});
  GemmI8(context_, {.out_f32 = dw.data(),
                    .ld_out = kShape.inputs,
                    .a = g.data(),
                    .lda = kShape.outputs,
                    .transpose_a = true,
                    .b = xq_.data(),
                    .ldb = kShape.inputs,
                    .transpose_b = false,
                    .row_scale = {g_scale.data(), false},
                    .col_scale = {&x_step_, true},
                    .m = kShape.outputs,
                    .n = kShape.inputs,
                    .k = kShape.tokens});
  const double plain = RelativeError(dw, ExactDw(false));
  printf("weight gradient: relative error %.4f rotated, %.4f plain\n", rotated, plain);
  EXPECT_LT(rotated, 0.015);
  EXPECT_GT(plain, 2 * rotated);
}

}  // namespace
}  // namespace lockstep::kernels
