// SPDX-License-Identifier: Apache-2.0
//
// Conformance, known values and invariances of the f32 matrix product.
#include "kernels/gemm_f32/gemm_f32.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/context.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

struct Shape {
  int64_t m;
  int64_t n;
  int64_t k;
};

// How the three matrices of a case lie in memory.
struct Layout {
  ElementKind a;
  ElementKind b;
  ElementKind c;
  bool a_transposed;
  bool b_transposed;
  bool accumulate;
};
constexpr ElementKind kF32 = ElementKind::kFloat32;
constexpr ElementKind kBf16 = ElementKind::kBFloat16;

// The products of a training step, and the rest of the transpositions and types.
constexpr Layout kLayouts[] = {
    {kBf16, kBf16, kF32, false, true, false},   // logits = x · wᵀ
    {kF32, kBf16, kBf16, false, false, false},  // dx = dlogits · w
    {kF32, kBf16, kF32, true, false, true},     // dw += dlogitsᵀ · x
    {kBf16, kBf16, kBf16, false, true, false},  // a linear layer in bf16
    {kBf16, kBf16, kF32, true, false, true},    // its weight gradient
    {kF32, kF32, kF32, false, false, false},   {kF32, kF32, kF32, true, true, true},
    {kBf16, kF32, kBf16, true, true, false},   {kF32, kF32, kBf16, true, false, false},
    {kBf16, kF32, kF32, false, true, true},
};

std::string NameOf(const Shape& s, const Layout& l) {
  const auto type = [](ElementKind t) { return t == kF32 ? "f32" : "bf16"; };
  return absl::StrCat(s.m, "x", s.n, "x", s.k, " ", type(l.a), l.a_transposed ? "T " : " ",
                      type(l.b), l.b_transposed ? "T " : " ", type(l.c),
                      l.accumulate ? " accumulate" : "");
}

template <class T>
GemmIn Operand(Case& c, int64_t rows, int64_t columns, bool transposed) {
  if (transposed) std::swap(rows, columns);
  const int64_t stride = columns + 3;
  const T* data = c.Input<T>(rows * stride);
  return transposed ? Transposed(data, stride) : Plain(data, stride);
}

GemmIn Operand(Case& c, ElementKind type, int64_t rows, int64_t columns, bool transposed) {
  return type == kF32 ? Operand<float>(c, rows, columns, transposed)
                      : Operand<BFloat16>(c, rows, columns, transposed);
}

// What an earlier product left: multiples of 2^-124.
float* EarlierResult(Case& c, int64_t count) {
  float* data = c.InOut<float>(count);
  for (int64_t i = 0; i < count; ++i) data[i] = Canon(Snap(data[i]));
  return data;
}

void AddCase(Cases& cases, const Shape& s, const Layout& l, InputKind kind) {
  Case& c = cases.New(NameOf(s, l), kind);
  const int64_t stride = s.n + 5;
  GemmF32Args args = {.c = {},
                      .a = Operand(c, l.a, s.m, s.k, l.a_transposed),
                      .b = Operand(c, l.b, s.k, s.n, l.b_transposed),
                      .m = s.m,
                      .n = s.n,
                      .k = s.k,
                      .accumulate = l.accumulate};
  if (l.accumulate) {
    args.c = Out(EarlierResult(c, s.m * stride), stride);
  } else if (l.c == kF32) {
    args.c = Out(c.Output<float>(s.m * stride), stride);
  } else {
    args.c = Out(c.Output<BFloat16>(s.m * stride), stride);
  }
  c.Calls([args](const Context& context) { GemmF32(context, args); });
}

KERNEL_CASES(GemmF32, cases) {
  // Every kind of input meets every layout at a shape with an edge in each direction.
  for (const Layout& layout : kLayouts) {
    for (InputKind kind : kAllInputKinds) AddCase(cases, {13, 35, 261}, layout, kind);
  }
  // Every edge of tiles, of vectors and of blocks of k meets every layout.
  constexpr Shape kShapes[] = {
      {0, 5, 7},    {5, 0, 7},    {5, 7, 0},     {1, 1, 1},     {1, 40, 300}, {40, 1, 300},
      {2, 3, 4},    {3, 7, 5},    {4, 24, 255},  {8, 12, 256},  {7, 11, 257}, {12, 32, 513},
      {11, 31, 16}, {13, 33, 17}, {25, 65, 255}, {16, 48, 512}, {24, 16, 3},  {9, 15, 33},
  };
  for (const Layout& layout : kLayouts) {
    for (const Shape& shape : kShapes) AddCase(cases, shape, layout, InputKind::kNormal);
  }
  // More than one block of columns and of rows.
  AddCase(cases, {5, 1000, 20}, kLayouts[0], InputKind::kCancel);
  AddCase(cases, {5, 4200, 3}, kLayouts[1], InputKind::kSnap);
  AddCase(cases, {3100, 5, 3}, kLayouts[2], InputKind::kSmall);
  AddCase(cases, {3100, 5, 260}, kLayouts[3], InputKind::kNormal);
}

template <class T>
std::vector<T> Draw(int64_t count, InputKind kind, uint64_t seed) {
  std::vector<T> values(count);
  FillInput(values.data(), count, kind, seed);
  return values;
}

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), [](float x) { return Bits(x); });
  return bits;
}

std::vector<Isa> AllIsas() {
  std::vector<Isa> isas = TestedIsas();
  isas.push_back(Isa::kReference);
  return isas;
}

TEST(GemmF32, CutsOfKAtMultiplesOf256DoNotMatter) {
  constexpr int64_t kM = 14;
  constexpr int64_t kN = 37;
  constexpr int64_t kK = 1100;
  ThreadPool pool(2);
  for (InputKind kind : kAllInputKinds) {
    const std::vector<float> a = Draw<float>(kM * kK, kind, 1);
    const std::vector<BFloat16> b = Draw<BFloat16>(kN * kK, kind, 2);
    const auto multiply = [&](Isa isa, std::vector<int64_t> cuts) {
      std::vector<float> c(kM * kN, -1.0f);
      cuts.push_back(kK);
      int64_t k0 = 0;
      for (int64_t k1 : cuts) {
        GemmF32(Context{pool, KernelsFor(isa)}, {.c = Out(c.data(), kN),
                                                 .a = Plain(a.data() + k0, kK),
                                                 .b = Transposed(b.data() + k0, kK),
                                                 .m = kM,
                                                 .n = kN,
                                                 .k = k1 - k0,
                                                 .accumulate = k0 > 0});
        k0 = k1;
      }
      return BitsOf(c);
    };
    const std::vector<uint32_t> whole = multiply(Isa::kReference, {});
    for (Isa isa : AllIsas()) {
      EXPECT_EQ(whole, multiply(isa, {256})) << IsaName(isa) << " " << InputKindName(kind);
      EXPECT_EQ(whole, multiply(isa, {512, 768, 1024})) << IsaName(isa);
      EXPECT_EQ(whole, multiply(isa, {256, 512, 768, 1024})) << IsaName(isa);
    }
  }
}

TEST(GemmF32, FollowsTheWrittenOrder) {
  constexpr int64_t kK = 600;
  const std::vector<float> a = Draw<float>(kK, InputKind::kCancel, 3);
  const std::vector<float> b = Draw<float>(kK, InputKind::kNormal, 4);
  float expected = 0.0f;
  for (int64_t block = 0; block < kK; block += 256) {
    float acc = 0.0f;
    for (int64_t k = block; k < std::min(kK, block + 256); ++k) acc = Fma(a[k], b[k], acc);
    expected = expected + acc;
  }
  ThreadPool pool(1);
  for (Isa isa : AllIsas()) {
    float c = -1.0f;
    GemmF32(Context{pool, KernelsFor(isa)}, {.c = Out(&c, 1),
                                             .a = Plain(a.data(), kK),
                                             .b = Plain(b.data(), 1),
                                             .m = 1,
                                             .n = 1,
                                             .k = kK});
    EXPECT_EQ(Bits(c), Bits(expected)) << IsaName(isa);
  }
}

TEST(GemmF32, KnownValues) {
  // [1 2 3; 4 5 6] · [7 8; 9 10; 11 12] = [58 64; 139 154], whichever way the operands lie.
  const float a[] = {1, 2, 3, 4, 5, 6};
  const float at[] = {1, 4, 2, 5, 3, 6};
  const float b[] = {7, 8, 9, 10, 11, 12};
  const float bt[] = {7, 9, 11, 8, 10, 12};
  ThreadPool pool(1);
  for (Isa isa : AllIsas()) {
    for (const GemmIn& left : {Plain(a, 3), Transposed(at, 2)}) {
      for (const GemmIn& right : {Plain(b, 2), Transposed(bt, 3)}) {
        std::vector<float> c = {1, 1, 1, 1};
        GemmF32Args args = {.c = Out(c.data(), 2), .a = left, .b = right, .m = 2, .n = 2, .k = 3};
        const Context context = {pool, KernelsFor(isa)};
        GemmF32(context, args);
        EXPECT_EQ(c, (std::vector<float>{58, 64, 139, 154})) << IsaName(isa);
        args.accumulate = true;
        GemmF32(context, args);
        EXPECT_EQ(c, (std::vector<float>{116, 128, 278, 308})) << IsaName(isa);
      }
    }
  }
}

TEST(GemmF32, RoundsToBf16OnceAtTheEnd) {
  // 1 + 2^-8 (half an ulp of bf16 at 1) in the first block of k and 2^-8 in the second: rounded
  // once, 1 + 2^-7; a running sum kept in bf16 would stay at 1.
  constexpr int64_t kK = 257;
  std::vector<float> a(kK, 0.0f);
  a[0] = 0x1.01p0f;
  a[256] = 0x1p-8f;
  const std::vector<float> one(kK, 1.0f);
  ThreadPool pool(1);
  for (Isa isa : AllIsas()) {
    BFloat16 c = {0};
    GemmF32(Context{pool, KernelsFor(isa)}, {.c = Out(&c, 1),
                                             .a = Plain(a.data(), kK),
                                             .b = Plain(one.data(), 1),
                                             .m = 1,
                                             .n = 1,
                                             .k = kK});
    EXPECT_EQ(c.bits, 0x3f81) << IsaName(isa);
  }
}

TEST(GemmF32, StoresTheCanonicalNan) {
  const float a[] = {FromBits(0xffc12345u), 1.0f};
  const float b[] = {1.0f, FromBits(0x7f800000u)};
  const float zero = 0.0f;
  ThreadPool pool(1);
  for (Isa isa : AllIsas()) {
    const Context context = {pool, KernelsFor(isa)};
    float c[4] = {};
    GemmF32(context, {.c = Out(c, 2), .a = Plain(a, 1), .b = Plain(b, 2), .m = 2, .n = 2, .k = 1});
    EXPECT_EQ(Bits(c[0]), 0x7fc00000u) << IsaName(isa);
    EXPECT_EQ(Bits(c[1]), 0x7fc00000u) << IsaName(isa);
    EXPECT_EQ(Bits(c[2]), 0x3f800000u) << IsaName(isa);
    EXPECT_EQ(Bits(c[3]), 0x7f800000u) << IsaName(isa);
    float zero_times_infinity = 0.0f;
    GemmF32(context, {.c = Out(&zero_times_infinity, 1),
                      .a = Plain(&zero, 1),
                      .b = Plain(b + 1, 1),
                      .m = 1,
                      .n = 1,
                      .k = 1});
    EXPECT_EQ(Bits(zero_times_infinity), 0x7fc00000u) << IsaName(isa);
  }
}

TEST(GemmF32, AgreesWithBinary64) {
  // Against the same sum in binary64, within the bound of a sum of 256 and a few roundings:
  // |error| <= 300 * 2^-24 * sum of |a b|.
  constexpr int64_t kM = 19;
  constexpr int64_t kN = 45;
  constexpr int64_t kK = 700;
  const std::vector<float> a = Draw<float>(kM * kK, InputKind::kNormal, 5);
  const std::vector<float> b = Draw<float>(kK * kN, InputKind::kNormal, 6);
  ThreadPool pool(2);
  for (Isa isa : AllIsas()) {
    std::vector<float> c(kM * kN);
    GemmF32(Context{pool, KernelsFor(isa)}, {.c = Out(c.data(), kN),
                                             .a = Plain(a.data(), kK),
                                             .b = Plain(b.data(), kN),
                                             .m = kM,
                                             .n = kN,
                                             .k = kK});
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        double sum = 0;
        double magnitude = 0;
        for (int64_t k = 0; k < kK; ++k) {
          const double product = static_cast<double>(a[i * kK + k]) * b[k * kN + j];
          sum += product;
          magnitude += product < 0 ? -product : product;
        }
        ASSERT_NEAR(c[i * kN + j], sum, 300 * 0x1p-24 * magnitude) << IsaName(isa);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
