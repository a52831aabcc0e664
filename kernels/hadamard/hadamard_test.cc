// SPDX-License-Identifier: Apache-2.0
//
// Conformance of the Walsh-Hadamard kernels, their algebra, and that the fused ones are their
// compositions.
#include "kernels/hadamard/hadamard.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quantize/dequantize.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

struct Shape {
  int64_t rows;
  int64_t cols;
  int64_t block;
};
std::string Name(const Shape& s, const char* type) {
  return std::to_string(s.rows) + "x" + std::to_string(s.cols) + " block " +
         std::to_string(s.block) + " " + type;
}

template <class T>
void RowsCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t block = 1; block <= kHadamardBlockMax; block *= 2) {
      for (int64_t blocks : {1, 3, 5, 20}) {
        const int64_t count = blocks * block;
        if (count > 4096) continue;
        Case& c = cases.New(Name({1, count, block}, type), kind);
        c.Runs(HadamardRowsArgs{
            .out = c.Output<float>(count), .x = c.Input<T>(count), .count = count, .block = block});
      }
    }
    float* x;
    Case& c = cases.New("in place", kind);
    x = c.InOut<float>(128);
    c.Runs(HadamardRowsArgs{.out = x, .x = x, .count = 128, .block = 64});
  }
}
KERNEL_CASES(HadamardRows, cases) {
  RowsCases<BFloat16>(cases, "bf16");
  RowsCases<float>(cases, "f32");
}

std::vector<Shape> ColumnShapes() {
  std::vector<Shape> shapes = {{3, 5, 1}, {6, 65, 2}, {48, 64, 16}, {96, 100, 32}, {256, 97, 128}};
  for (int64_t block = 1; block <= 512; block *= 2) shapes.push_back({block, 33, block});
  shapes.push_back({1024, 3, 1024});
  return shapes;
}

template <class T>
void ColumnsCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : ColumnShapes()) {
      Case& c = cases.New(Name(s, type), kind);
      c.Runs(HadamardColumnsArgs{.out = c.Output<float>(s.rows * s.cols),
                                 .x = c.Input<T>(s.rows * s.cols),
                                 .rows = s.rows,
                                 .cols = s.cols,
                                 .block = s.block});
    }
  }
}
KERNEL_CASES(HadamardColumns, cases) {
  ColumnsCases<BFloat16>(cases, "bf16");
  ColumnsCases<float>(cases, "f32");
}

template <class T>
void QuantizeRowsCases(Cases& cases, const char* type) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s :
         {Shape{3, 5, 1}, Shape{2, 10, 2}, Shape{3, 60, 4}, Shape{3, 24, 8}, Shape{2, 48, 16},
          Shape{5, 96, 32}, Shape{1, 704, 64}, Shape{2, 384, 128}, Shape{3, 512, 256},
          Shape{2, 1024, 512}, Shape{1, 1024, 1024}}) {
      Case& c = cases.New(Name(s, type), kind);
      c.Runs(HadamardQuantizeRowsArgs{.q = c.Output<int8_t>(s.rows * s.cols),
                                      .scale = c.Output<float>(s.rows),
                                      .x = c.Input<T>(s.rows * s.cols),
                                      .rows = s.rows,
                                      .cols = s.cols,
                                      .block = s.block,
                                      .gain = 1.0f / static_cast<float>(s.block)});
    }
  }
}
KERNEL_CASES(HadamardQuantizeRows, cases) {
  QuantizeRowsCases<BFloat16>(cases, "bf16");
  QuantizeRowsCases<float>(cases, "f32");
}

template <class T>
void QuantizeColumnsCases(Cases& cases, const char* type, bool row_scales) {
  for (InputKind kind : kAllInputKinds) {
    for (const Shape& s : ColumnShapes()) {
      Case& c = cases.New(Name(s, type), kind);
      c.Runs(HadamardQuantizeColumnsArgs{
          .q = c.Output<int8_t>(s.rows * s.cols),
          .scale = c.Output<float>(s.cols),
          .x = c.Input<T>(s.rows * s.cols),
          .row_scale = row_scales ? c.Input<float>(s.rows) : nullptr,
          .rows = s.rows,
          .cols = s.cols,
          .block = s.block,
          .gain = row_scales ? 1.0f / static_cast<float>(s.block) : 0x1.234p-9f});
    }
  }
}
KERNEL_CASES(HadamardQuantizeColumns, cases) {
  QuantizeColumnsCases<BFloat16>(cases, "bf16", false);
  QuantizeColumnsCases<float>(cases, "f32", false);
  QuantizeColumnsCases<int8_t>(cases, "int8", false);
  QuantizeColumnsCases<int8_t>(cases, "int8 with row scales", true);
}

class HadamardTest : public ::testing::Test {
 protected:
  std::vector<Context> Contexts() {
    std::vector<Context> contexts = {Context{pool_, KernelsFor(Isa::kReference)}};
    for (Isa isa : TestedIsas()) contexts.push_back(Context{pool_, KernelsFor(isa)});
    return contexts;
  }
  ThreadPool pool_{2};
};

// Row i of the Sylvester matrix: the sign of entry j is the parity of the bits i and j share.
TEST_F(HadamardTest, IsTheSylvesterMatrix) {
  for (const Context& context : Contexts()) {
    for (int64_t block : {1, 2, 8, 64, 256, 1024}) {
      std::vector<float> x(block);
      TestRandom random(block);
      for (float& v : x) v = static_cast<float>(random.Below(255) - 127);
      std::vector<float> y(block);
      kernels::Run(context, HadamardRowsArgs{
                                .out = y.data(), .x = x.data(), .count = block, .block = block});
      for (int64_t i = 0; i < block; ++i) {
        float expected = 0.0f;
        for (int64_t j = 0; j < block; ++j) {
          expected += __builtin_parityll(i & j) != 0 ? -x[j] : x[j];
        }
        ASSERT_EQ(y[i], expected) << block << " " << i;
      }
    }
  }
}

TEST_F(HadamardTest, TwiceIsTheBlockLengthTimesTheInput) {
  for (const Context& context : Contexts()) {
    constexpr int64_t kRows = 512;
    constexpr int64_t kCols = 70;
    std::vector<float> x(kRows * kCols);
    TestRandom random(9);
    for (float& v : x) v = static_cast<float>(random.Below(255) - 127);
    std::vector<float> once(x.size());
    std::vector<float> twice(x.size());
    HadamardColumnsArgs args = {
        .out = once.data(), .x = x.data(), .rows = kRows, .cols = kCols, .block = 256};
    kernels::Run(context, args);
    args.out = twice.data();
    args.x = once.data();
    kernels::Run(context, args);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(twice[i], 256.0f * x[i]);
  }
}

TEST_F(HadamardTest, FusedRowsAreTheComposition) {
  for (const Context& context : Contexts()) {
    for (InputKind kind : kAllInputKinds) {
      constexpr int64_t kRows = 3;
      constexpr int64_t kCols = 320;
      std::vector<BFloat16> x(kRows * kCols);
      FillInput(x.data(), x.size(), kind, 5);
      std::vector<float> y(x.size());
      std::vector<int8_t> q(x.size()), fused_q(x.size());
      std::vector<float> scale(kRows), fused_scale(kRows);
      kernels::Run(
          context,
          HadamardRowsArgs{.out = y.data(), .x = x.data(), .count = kRows * kCols, .block = 64});
      kernels::Run(context, QuantizeRowsArgs{.q = q.data(),
                                             .scale = scale.data(),
                                             .x = y.data(),
                                             .rows = kRows,
                                             .cols = kCols,
                                             .gain = 0x1p-6f});
      kernels::Run(context, HadamardQuantizeRowsArgs{.q = fused_q.data(),
                                                     .scale = fused_scale.data(),
                                                     .x = x.data(),
                                                     .rows = kRows,
                                                     .cols = kCols,
                                                     .block = 64,
                                                     .gain = 0x1p-6f});
      EXPECT_EQ(q, fused_q) << InputKindName(kind);
      EXPECT_EQ(0, std::memcmp(scale.data(), fused_scale.data(), kRows * sizeof(float)));
    }
  }
}

// From int8 rows with scales: dequantised, transformed, quantised.
TEST_F(HadamardTest, FusedColumnsAreTheComposition) {
  for (const Context& context : Contexts()) {
    for (InputKind kind : kAllInputKinds) {
      constexpr int64_t kRows = 192;
      constexpr int64_t kCols = 75;
      std::vector<int8_t> x(kRows * kCols);
      FillInput(x.data(), x.size(), kind, 5);
      std::vector<float> row_scale(kRows);
      FillInput(row_scale.data(), kRows, kind, 6);
      std::vector<float> values(x.size()), y(x.size());
      std::vector<int8_t> q(x.size()), fused_q(x.size());
      std::vector<float> scale(kCols), fused_scale(kCols);
      kernels::Run(context, DequantizeRowsArgs{.out = values.data(),
                                               .q = x.data(),
                                               .scale = row_scale.data(),
                                               .rows = kRows,
                                               .cols = kCols});
      kernels::Run(
          context,
          HadamardColumnsArgs{
              .out = y.data(), .x = values.data(), .rows = kRows, .cols = kCols, .block = 64});
      kernels::Run(context, QuantizeColumnsArgs{.q = q.data(),
                                                .scale = scale.data(),
                                                .x = y.data(),
                                                .rows = kRows,
                                                .cols = kCols,
                                                .gain = 3.0f});
      kernels::Run(context, HadamardQuantizeColumnsArgs{.q = fused_q.data(),
                                                        .scale = fused_scale.data(),
                                                        .x = x.data(),
                                                        .row_scale = row_scale.data(),
                                                        .rows = kRows,
                                                        .cols = kCols,
                                                        .block = 64,
                                                        .gain = 3.0f});
      EXPECT_EQ(q, fused_q) << InputKindName(kind);
      EXPECT_EQ(0, std::memcmp(scale.data(), fused_scale.data(), kCols * sizeof(float)));
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
