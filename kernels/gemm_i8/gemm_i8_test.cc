// SPDX-License-Identifier: Apache-2.0
//
// Conformance, known values and extreme sums of the int8 matrix product.
#include "kernels/gemm_i8/gemm_i8.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/gemm_i8/dequantize.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

enum class Output { kI32, kF32, kBF16 };

struct Shape {
  int64_t m;
  int64_t n;
  int64_t k;
};

std::string Name(const Shape& shape, bool transpose_a, bool transpose_b) {
  return absl::StrCat(transpose_a ? "At" : "A", transpose_b ? "Bt " : "B ", shape.m, "x", shape.n,
                      "x", shape.k);
}

// Elements of a matrix whose last row ends with its last element.
int64_t Extent(int64_t rows, int64_t columns, int64_t ld) {
  return rows == 0 || columns == 0 ? 0 : (rows - 1) * ld + columns;
}

// Sizes and strides of a call with rows `gap` elements apart; its pointers are not set.
GemmI8Args ArgsOf(const Shape& shape, bool transpose_a, bool transpose_b, int64_t gap) {
  return {.ld_out = shape.n + gap,
          .a = nullptr,
          .lda = (transpose_a ? shape.m : shape.k) + gap,
          .transpose_a = transpose_a,
          .b = nullptr,
          .ldb = (transpose_b ? shape.k : shape.n) + gap,
          .transpose_b = transpose_b,
          .m = shape.m,
          .n = shape.n,
          .k = shape.k};
}

void SetOutput(Case& c, GemmI8Args& args, Output output) {
  const int64_t size = Extent(args.m, args.n, args.ld_out);
  if (output == Output::kI32) args.out_i32 = c.Output<int32_t>(size);
  if (output == Output::kF32) args.out_f32 = c.Output<float>(size);
  if (output == Output::kBF16) args.out_bf16 = c.Output<BFloat16>(size);
}

void AddCase(Cases& cases, const Shape& shape, bool transpose_a, bool transpose_b, int64_t gap,
             Output output, InputKind kind, bool single_row_scale, bool single_col_scale) {
  Case& c = cases.New(Name(shape, transpose_a, transpose_b), kind);
  GemmI8Args args = ArgsOf(shape, transpose_a, transpose_b, gap);
  SetOutput(c, args, output);
  args.a = c.Input<int8_t>(transpose_a ? Extent(shape.k, shape.m, args.lda)
                                       : Extent(shape.m, shape.k, args.lda));
  args.b = c.Input<int8_t>(transpose_b ? Extent(shape.n, shape.k, args.ldb)
                                       : Extent(shape.k, shape.n, args.ldb));
  args.row_scale = {c.Input<float>(single_row_scale ? 1 : shape.m), single_row_scale};
  args.col_scale = {c.Input<float>(single_col_scale ? 1 : shape.n), single_col_scale};
  c.Calls([args](const Context& context) { GemmI8(context, args); });
}

// The edges of every tile and packing block, met in changing pairs.
KERNEL_CASES(GemmI8, cases) {
  constexpr int64_t kRows[] = {1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 27, 28, 29, 43, 115};
  constexpr int64_t kColumns[] = {1,  3,  8,  11, 12, 13, 15, 16,  17,
                                  31, 32, 33, 49, 64, 65, 97, 130, 259};
  constexpr int64_t kDepths[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,   15,
                                 16, 17, 31, 32, 33, 63, 64, 65, 66, 127, 200};
  constexpr int64_t kGaps[] = {0, 1, 0, 5, 64};
  size_t turn = 0;
  for (Output output : {Output::kI32, Output::kF32, Output::kBF16}) {
    for (bool transpose_a : {false, true}) {
      for (bool transpose_b : {false, true}) {
        for (int64_t k : kDepths) {
          for (int repeat = 0; repeat < 2; ++repeat, ++turn) {
            const Shape shape = {kRows[turn % std::size(kRows)],
                                 kColumns[turn * 5 % std::size(kColumns)], k};
            AddCase(cases, shape, transpose_a, transpose_b, kGaps[turn % std::size(kGaps)], output,
                    kAllInputKinds[turn % std::size(kAllInputKinds)], turn % 3 == 0, turn % 4 == 0);
          }
        }
        for (const Shape& empty : {Shape{0, 7, 9}, Shape{7, 0, 9}, Shape{0, 0, 0}}) {
          AddCase(cases, empty, transpose_a, transpose_b, 1, output, InputKind::kNormal, true,
                  false);
        }
      }
    }
  }
}

// Operands that do not fit a block when packed, so that the driver takes several of each.
KERNEL_CASES(GemmI8Blocks, cases) {
  for (bool transposed : {false, true}) {
    AddCase(cases, {300, 2, 34000}, transposed, !transposed, 0, Output::kI32, InputKind::kNormal,
            true, true);
    AddCase(cases, {2, 300, 34000}, transposed, !transposed, 0, Output::kBF16, InputKind::kNormal,
            false, false);
    // So wide that each of up to five threads packs A for itself.
    AddCase(cases, {45, 1300, 70}, transposed, transposed, 0, Output::kF32, InputKind::kNormal,
            false, true);
  }
}

// Scales of every kind in every row and column.
KERNEL_CASES(GemmI8Scales, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (Output output : {Output::kF32, Output::kBF16}) {
      AddCase(cases, {61, 67, 5}, false, true, 0, output, kind, false, false);
    }
  }
}

void AddExtremes(Cases& cases, bool transposed, int sign) {
  constexpr Shape kShape = {3, 2, kGemmI8DepthMax};
  Case& c = cases.New(absl::StrCat(Name(kShape, transposed, transposed), " all ", sign * 127),
                      InputKind::kNormal);
  GemmI8Args args = ArgsOf(kShape, transposed, transposed, 0);
  SetOutput(c, args, Output::kI32);
  const auto extreme = static_cast<int8_t>(sign * 127);
  args.a = c.Values(std::vector<int8_t>(kShape.m * kShape.k, 127));
  args.b = c.Values(std::vector<int8_t>(kShape.n * kShape.k, extreme));
  c.Calls([args](const Context& context) {
    GemmI8(context, args);
    for (int64_t i = 0; i < args.m * args.n; ++i) {
      EXPECT_EQ(args.out_i32[i], (args.b[0] < 0 ? -1 : 1) * 2145157000);
    }
  });
}

KERNEL_CASES(GemmI8Extremes, cases) {
  for (bool transposed : {false, true}) {
    for (int sign : {-1, 1}) AddExtremes(cases, transposed, sign);
  }
}

// [1 2 3; 4 5 6] times [7 8; 9 10; 11 12], in all four ways to store them.
TEST(GemmI8, MultipliesInEveryLayout) {
  const int8_t a[] = {1, 2, 3, 4, 5, 6};
  const int8_t at[] = {1, 4, 2, 5, 3, 6};
  const int8_t b[] = {7, 8, 9, 10, 11, 12};
  const int8_t bt[] = {7, 9, 11, 8, 10, 12};
  std::vector<Isa> isas = TestedIsas();
  isas.push_back(Isa::kReference);
  ThreadPool pool(1);
  for (Isa isa : isas) {
    for (bool transpose_a : {false, true}) {
      for (bool transpose_b : {false, true}) {
        int32_t out[4] = {};
        GemmI8Args args = ArgsOf({2, 2, 3}, transpose_a, transpose_b, 0);
        args.out_i32 = out;
        args.a = transpose_a ? at : a;
        args.b = transpose_b ? bt : b;
        GemmI8(Context{pool, KernelsFor(isa)}, args);
        EXPECT_EQ(std::vector<int32_t>(out, out + 4), (std::vector<int32_t>{58, 64, 139, 154}));
      }
    }
  }
}

TEST(Dequantize, RoundsOnceForEachStep) {
  // 2^24 + 1 lies between two floats and goes to the even one; so does 2^24 + 3.
  EXPECT_EQ(Bits(Dequantize(16777217, 1.0f, 1.0f)), Bits(16777216.0f));
  EXPECT_EQ(Bits(Dequantize(16777219, 1.0f, 1.0f)), Bits(16777220.0f));
  // (1 + 2^-23)^2 is rounded to 1 + 2^-22 first; then 2^23 + 2^21 times that is a tie, to the even
  // 2^23 + 2^21 + 2. Rounding only at the end would go up.
  EXPECT_EQ(Bits(Dequantize(10485760, 1.0f + 0x1p-23f, 1.0f + 0x1p-23f)), Bits(10485762.0f));
}

TEST(Dequantize, TinyScalesAreZero) {
  EXPECT_EQ(Bits(DequantizeScale(0x1p-63f, 0x1p-63f)), Bits(0.0f));
  EXPECT_EQ(Bits(DequantizeScale(-0x1p-63f, 0x1p-62f)), Bits(-0x1p-125f));
  EXPECT_EQ(Bits(Dequantize(2145157000, 0x1p-63f, 0x1p-63f)), Bits(0.0f));
}

}  // namespace
}  // namespace lockstep::kernels
