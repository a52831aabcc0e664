// SPDX-License-Identifier: Apache-2.0
//
// Conformance and accuracy of the sums.
#include "kernels/reduce/reduce.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/gradients.h"

namespace lockstep::kernels {
namespace {

ConstElements MakeInput(Case& c, bool f32, int64_t count) {
  if (f32) return c.Input<float>(count);
  return c.Input<BFloat16>(count);
}

KERNEL_CASES(RowSums, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (bool f32 : {false, true}) {
      for (int64_t cols : {0, 1, 31, 32, 33, 63, 65, 100, 4095, 4096, 4097, 8200}) {
        Case& c = cases.New("3 x " + std::to_string(cols), kind);
        c.Runs(RowSumsArgs{.out = c.Output<float>(3),
                           .x = MakeInput(c, f32, 3 * (cols + 2)),
                           .rows = 3,
                           .cols = cols,
                           .stride = cols + 2});
      }
    }
  }
}

KERNEL_CASES(ColumnSums, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (bool f32 : {false, true}) {
      for (int64_t rows : {0, 1, 2, 5, 255, 256, 257, 600}) {
        for (int64_t cols : {1, 16, 37}) {
          Case& c = cases.New(std::to_string(rows) + " x " + std::to_string(cols), kind);
          const ColumnSumsArgs args = {.out = c.Output<float>(cols),
                                       .x = MakeInput(c, f32, rows * (cols + 1)),
                                       .rows = rows,
                                       .cols = cols,
                                       .stride = cols + 1};
          c.Calls([args](const Context& context) { ColumnSums(context, args); });
        }
      }
    }
  }
}

KERNEL_CASES(SumOfSquares, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t count : {1, 100, 4097, 65535, 65536, 65537, 140000}) {
      Case& c = cases.New(std::to_string(count), kind);
      c.Runs(SumOfSquaresArgs{.totals = c.Output<float>((count + kNormChunk - 1) / kNormChunk),
                              .x = c.Input<float>(count),
                              .count = count});
    }
  }
}

KERNEL_CASES(GlobalNorm, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t chunks : {0, 1, 33, 5000}) {
      Case& c = cases.New(std::to_string(chunks) + " chunks", kind);
      c.Runs(GlobalNormArgs{
          .norm = c.Output<float>(1), .totals = c.Input<float>(chunks), .chunks = chunks});
    }
  }
}

TEST(Reduce, AgreesWithFloat64) {
  constexpr int64_t kCount = 150000;
  const auto x = NormalInput<float>(kCount, 1);
  std::vector<float> totals(3);
  float norm = 0.0f;
  float sum = 0.0f;
  std::vector<float> columns(100);
  ThreadPool pool(1);
  const Context context{pool, KernelsFor(Isa::kReference)};
  kernels::Run(context, SumOfSquaresArgs{totals.data(), x.data(), kCount});
  kernels::Run(context, GlobalNormArgs{&norm, totals.data(), 3});
  kernels::Run(context, RowSumsArgs{&sum, x.data(), 1, kCount, kCount});
  ColumnSums(context, ColumnSumsArgs{columns.data(), x.data(), kCount / 100, 100, 100});
  double squares = 0.0;
  double total = 0.0;
  double magnitudes = 0.0;
  std::vector<double> columns64(100);
  for (int64_t i = 0; i < kCount; ++i) {
    squares += static_cast<double>(x[i]) * x[i];
    total += x[i];
    magnitudes += std::abs(x[i]);
    columns64[i % 100] += x[i];
  }
  EXPECT_NEAR(norm / std::sqrt(squares), 1.0, 1e-6);
  EXPECT_NEAR(sum, total, magnitudes * 1e-7);
  EXPECT_LT(LargestError(ToDoubles(columns), columns64), 1e-5);
}

TEST(Reduce, ClipScale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ClipScale(0.5f, 1.0f), 1.0f);
  EXPECT_EQ(ClipScale(1.0f, 1.0f), 1.0f);
  EXPECT_EQ(ClipScale(4.0f, 1.0f), 0.25f);
  EXPECT_EQ(ClipScale(0.0f, 0.0f), 1.0f);
  EXPECT_EQ(ClipScale(kInfinity, 1.0f), 0.0f);
  EXPECT_EQ(ClipScale(NAN, 1.0f), 1.0f);
}

}  // namespace
}  // namespace lockstep::kernels
