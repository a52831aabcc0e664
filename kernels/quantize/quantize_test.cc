// SPDX-License-Identifier: Apache-2.0
//
// Conformance, known values and stated properties of the quantisation kernels.
#include "kernels/quantize/quantize.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quantize/dequantize.h"
#include "kernels/quantize/weights.h"
#include "kernels/testing/conformance.h"

namespace lockstep::kernels {
namespace {

using Shape = std::pair<int64_t, int64_t>;

Context ReferenceContext() {
  static auto* pool = new ThreadPool(1);
  return Context{*pool, KernelsFor(Isa::kReference)};
}

template <class T>
void AmaxCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t count : {int64_t{1}, int64_t{3}, int64_t{17}, int64_t{63}, int64_t{65},
                          int64_t{130}, kAmaxBlock + 1}) {
      Case& c = cases.New(std::to_string(count) + " " + type, kind);
      const AmaxBlocksArgs shape = {.amax = nullptr, .x = {}, .count = count};
      c.Runs(AmaxBlocksArgs{
          .amax = c.Output<float>(shape.items()), .x = c.Input<T>(count), .count = count});
    }
  }
}
KERNEL_CASES(AmaxBlocks, cases) {
  AmaxCases<BFloat16>(cases, "bf16");
  AmaxCases<float>(cases, "f32");
}

template <class T>
void TensorCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t count : {0, 1, 3, 8, 15, 16, 17, 33, 1000, 20000}) {
      Case& c = cases.New(std::to_string(count) + " " + type, kind);
      const QuantizeTensorArgs args = {.q = c.Output<int8_t>(count),
                                       .step = c.Output<float>(1),
                                       .x = c.Input<T>(count),
                                       .count = count};
      c.Calls([args](const Context& context) { QuantizeTensor(context, args); });
    }
  }
}
KERNEL_CASES(QuantizeTensor, cases) {
  TensorCases<BFloat16>(cases, "bf16");
  TensorCases<float>(cases, "f32");
}

// An amax that is not the tensor's: everything beyond it is clipped, whatever it is.
KERNEL_CASES(Quantize, cases) {
  const float amaxes[] = {0.0f,
                          FromBits(0x7f800000u),
                          FromBits(0x7fc00000u),
                          0x1p-125f,
                          0x1.fcp-119f,
                          0x1p-118f,
                          1.0f,
                          0x1p100f,
                          0x1.fffffep127f};
  for (InputKind kind : kAllInputKinds) {
    for (float amax : amaxes) {
      Case& c = cases.New("amax " + std::to_string(Bits(amax)), kind);
      c.Runs(QuantizeArgs{
          .q = c.Output<int8_t>(77), .x = c.Input<float>(77), .amax = amax, .count = 77});
    }
  }
}

const Shape kShapes[] = {{1, 1}, {2, 3}, {3, 16}, {5, 63}, {4, 64}, {70, 65}, {65, 130}, {3, 1000}};

std::string Name(const Shape& shape, const char* type) {
  return std::to_string(shape.first) + "x" + std::to_string(shape.second) + " " + type;
}

template <class Args, class T>
void LineCases(Cases& cases, const char* type, bool by_rows) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& shape : kShapes) {
      for (float gain : {1.0f, 0x1p-8f, 3.0f}) {
        const auto [rows, cols] = shape;
        Case& c = cases.New(Name(shape, type), kind);
        c.Runs(Args{.q = c.Output<int8_t>(rows * cols),
                    .scale = c.Output<float>(by_rows ? rows : cols),
                    .x = c.Input<T>(rows * cols),
                    .rows = rows,
                    .cols = cols,
                    .gain = gain});
      }
    }
  }
}
KERNEL_CASES(QuantizeRows, cases) {
  LineCases<QuantizeRowsArgs, BFloat16>(cases, "bf16", true);
  LineCases<QuantizeRowsArgs, float>(cases, "f32", true);
}
KERNEL_CASES(QuantizeColumns, cases) {
  LineCases<QuantizeColumnsArgs, BFloat16>(cases, "bf16", false);
  LineCases<QuantizeColumnsArgs, float>(cases, "f32", false);
}

// Rows of ones with a few weights far out, so that some are clipped.
template <class T>
std::vector<T> WeightsWithOutliers(int64_t rows, int64_t cols, uint64_t seed) {
  std::vector<T> w(rows * cols);
  TestRandom random(seed);
  for (T& x : w) Store(&x, static_cast<float>(random.Below(2001) - 1000) * 0x1p-10f);
  for (int64_t i = 0; i < rows; i += 2) {
    Store(&w[i * cols + random.Below(cols)], i % 4 == 0 ? 100.0f : -100.0f);
  }
  return w;
}

template <class T>
void WeightCases(Cases& cases, const char* type) {
  const auto add = [&](const Shape& shape, InputKind kind, const std::vector<T>* values) {
    const auto [rows, cols] = shape;
    Case& c = cases.New(Name(shape, type) + (values ? " outliers" : ""), kind);
    c.Runs(QuantizeWeightsArgs{.q = c.Output<int8_t>(rows * cols),
                               .step = c.Output<float>(rows),
                               .clipped = c.Output<int32_t>(rows),
                               .w = values ? c.Values(*values) : c.Input<T>(rows * cols),
                               .rows = rows,
                               .cols = cols});
  };
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& shape : kShapes) add(shape, kind, nullptr);
    add({3, kRun - 1}, kind, nullptr);
    add({3, kRun + 1}, kind, nullptr);
  }
  for (const Shape& shape : {Shape{5, 300}, Shape{9, 1000}}) {
    const auto w = WeightsWithOutliers<T>(shape.first, shape.second, 7);
    add(shape, InputKind::kNormal, &w);
  }
}
KERNEL_CASES(QuantizeWeights, cases) {
  WeightCases<BFloat16>(cases, "bf16");
  WeightCases<float>(cases, "f32");
}

template <class T>
void MaskCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& shape : {Shape{5, 300}, Shape{8, 1000}, Shape{3, 33}}) {
      const auto [rows, cols] = shape;
      const auto w = WeightsWithOutliers<T>(rows, cols, 11);
      std::vector<int8_t> q(rows * cols);
      std::vector<float> step(rows);
      std::vector<int32_t> clipped(rows);
      Run(ReferenceContext(), QuantizeWeightsArgs{.q = q.data(),
                                                  .step = step.data(),
                                                  .clipped = clipped.data(),
                                                  .w = w.data(),
                                                  .rows = rows,
                                                  .cols = cols});
      Case& c = cases.New(Name(shape, type), kind);
      c.Runs(MaskClippedArgs{.gradient = c.InOut<float>(rows * cols),
                             .w = c.Values(w),
                             .step = c.Values(step),
                             .clipped = c.Values(clipped),
                             .rows = rows,
                             .cols = cols});
    }
  }
}
KERNEL_CASES(MaskClipped, cases) {
  MaskCases<BFloat16>(cases, "bf16");
  MaskCases<float>(cases, "f32");
}

template <class T>
void ProductCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& shape : kShapes) {
      const auto [rows, cols] = shape;
      std::vector<int32_t> p(rows * cols);
      TestRandom random(rows * 1000 + cols);
      for (int32_t& x : p) x = static_cast<int32_t>(random.Next()) >> random.Below(32);
      Case& c = cases.New(Name(shape, type), kind);
      c.Runs(DequantizeProductArgs{.out = c.Output<T>(rows * cols),
                                   .p = c.Values(p),
                                   .row_scale = c.Input<float>(rows),
                                   .col_scale = c.Input<float>(cols),
                                   .rows = rows,
                                   .cols = cols});
    }
  }
}
KERNEL_CASES(DequantizeProduct, cases) {
  ProductCases<BFloat16>(cases, "bf16");
  ProductCases<float>(cases, "f32");
}

template <class T>
void DequantizeRowsCasesOf(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& shape : kShapes) {
      const auto [rows, cols] = shape;
      Case& c = cases.New(Name(shape, type), kind);
      c.Runs(DequantizeRowsArgs{.out = c.Output<T>(rows * cols),
                                .q = c.Input<int8_t>(rows * cols),
                                .scale = c.Input<float>(rows),
                                .rows = rows,
                                .cols = cols});
    }
  }
}
KERNEL_CASES(DequantizeRows, cases) {
  DequantizeRowsCasesOf<BFloat16>(cases, "bf16");
  DequantizeRowsCasesOf<float>(cases, "f32");
}

TEST(QuantizeTensor, KnownValues) {
  const float x[5] = {0.0f, 127.0f, -254.0f, 3.0f, 5.0f};  // step 2: 0, 63.5, -127, 1.5, 2.5
  int8_t q[5];
  float step;
  QuantizeTensor(ReferenceContext(), {.q = q, .step = &step, .x = x, .count = 5});
  EXPECT_EQ(step, 2.0f);
  const int8_t expected[5] = {0, 64, -127, 2, 2};  // ties to even
  EXPECT_EQ(0, std::memcmp(q, expected, 5));
}

TEST(QuantizeTensor, ZeroTensor) {
  const BFloat16 x[3] = {};
  int8_t q[3] = {1, 1, 1};
  float step = 1.0f;
  QuantizeTensor(ReferenceContext(), {.q = q, .step = &step, .x = x, .count = 3});
  EXPECT_EQ(Bits(step), 0u);
  for (int8_t value : q) EXPECT_EQ(value, 0);
}

TEST(QuantizeTensor, NonFiniteReachesEveryValueThroughTheStep) {
  for (uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u}) {
    const float x[3] = {1.0f, FromBits(bits), -2.0f};
    int8_t q[3];
    float step;
    QuantizeTensor(ReferenceContext(), {.q = q, .step = &step, .x = x, .count = 3});
    for (int8_t value : q) {
      EXPECT_EQ(value, 0);
      EXPECT_TRUE(std::isnan(static_cast<float>(value) * step));
    }
  }
}

TEST(QuantizeTensor, NothingClipsAndTheErrorIsHalfAStep) {
  for (InputKind kind : {InputKind::kNormal, InputKind::kSmall, InputKind::kWide}) {
    std::vector<float> x(100000);
    FillInput(x.data(), x.size(), kind, 3);
    std::vector<int8_t> q(x.size());
    float step;
    QuantizeTensor(
        ReferenceContext(),
        {.q = q.data(), .step = &step, .x = x.data(), .count = static_cast<int64_t>(x.size())});
    int largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<int>(q[i])));
      const double error = std::abs(static_cast<double>(x[i]) - static_cast<double>(q[i]) * step);
      ASSERT_LE(error, 0.5001 * step) << i;
    }
    EXPECT_EQ(largest, 127);
  }
}

// The stated edges of quantizer.h, over every exponent and many fractions.
TEST(Quantizer, LargestMagnitudeBecomes127AndInverseIsNormal) {
  TestRandom random(5);
  for (uint32_t exponent = 1; exponent < 255; ++exponent) {
    for (int i = 0; i < 2000; ++i) {
      const float amax = Canon(FromBits((exponent << 23) | (random.Next() & 0x7fffffu)));
      const float step = StepOfAmax(amax);
      const Quantizer quantizer = QuantizerOfAmax(amax);
      if (step == 0.0f) {
        ASSERT_EQ(quantizer.inverse, 0.0f);
        continue;
      }
      ASSERT_GE(quantizer.inverse, 0x1p-122f);
      ASSERT_LE(quantizer.inverse, 0x1p126f);
      ASSERT_LT(std::abs(amax * quantizer.inverse), kClipBound);
      ASSERT_EQ(QuantizeOne(amax, quantizer), 127);
      ASSERT_EQ(QuantizeOne(-amax, quantizer), -127);
    }
  }
}

TEST(QuantizeWeights, StepIsTheFormulaAndClippingIsCounted) {
  constexpr int64_t kRows = 9;
  constexpr int64_t kCols = 1000;
  const auto w = WeightsWithOutliers<float>(kRows, kCols, 23);
  std::vector<int8_t> q(kRows * kCols);
  std::vector<float> step(kRows);
  std::vector<int32_t> clipped(kRows);
  kernels::Run(ReferenceContext(), QuantizeWeightsArgs{.q = q.data(),
                                                       .step = step.data(),
                                                       .clipped = clipped.data(),
                                                       .w = w.data(),
                                                       .rows = kRows,
                                                       .cols = kCols});
  int32_t total = 0;
  for (int64_t o = 0; o < kRows; ++o) {
    double sum = 0;
    int32_t beyond = 0;
    for (int64_t k = 0; k < kCols; ++k) sum += std::abs(static_cast<double>(w[o * kCols + k]));
    const double exact = 2.0 * (sum / kCols) / std::sqrt(127.0);
    EXPECT_NEAR(step[o], exact, exact * 1e-6);
    for (int64_t k = 0; k < kCols; ++k) {
      const double t = w[o * kCols + k] / exact;
      if (std::abs(t) >= 127.5) ++beyond;
      const double clamped = std::max(-127.0, std::min(127.0, t));
      ASSERT_LE(std::abs(q[o * kCols + k] - clamped), 0.5001);
    }
    EXPECT_EQ(clipped[o], beyond);
    total += beyond;
  }
  EXPECT_EQ(total, 5);  // one in every other row
}

TEST(LsqFactor, IsTheRoundedFormula) {
  for (int64_t cols : {1, 3, 256, 704, 2048, 5632, 11264}) {
    EXPECT_EQ(LsqFactor(cols), static_cast<float>(2.0 / std::sqrt(127.0) / cols));
  }
}

}  // namespace
}  // namespace lockstep::kernels
