// SPDX-License-Identifier: Apache-2.0
//
// Conformance and known values of the gradient's elementwise kernels.
#include "kernels/gradient/gradient.h"

#include "gtest/gtest.h"
#include "kernels/testing/conformance.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kCounts[] = {1, 3, 4, 7, 8, 15, 16, 17, 33, 1000};
// Powers of two that lift out of and push into the tiny range, and a number that rounds.
constexpr float kScales[] = {0.0f, 1.0f, -0x1p-2f, 0x1p3f, 0.33333334f};

std::string NameOf(int64_t count) { return std::to_string(count) + " elements"; }

KERNEL_CASES(Accumulate, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (float scale : kScales) {
      for (int64_t count : kCounts) {
        Case& c = cases.New(NameOf(count), kind);
        c.Runs(AccumulateArgs{.acc = c.InOut<float>(count),
                              .x = c.Input<float>(count),
                              .count = count,
                              .scale = scale});
      }
    }
  }
}

KERNEL_CASES(AddInto, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t count : kCounts) {
      Case& c = cases.New(NameOf(count), kind);
      c.Runs(AddIntoArgs{.acc = c.InOut<float>(count), .x = c.Input<float>(count), .count = count});
    }
  }
}

KERNEL_CASES(Scale, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (float scale : kScales) {
      for (int64_t count : kCounts) {
        Case& c = cases.New(NameOf(count), kind);
        c.Runs(ScaleArgs{.x = c.InOut<float>(count), .count = count, .scale = scale});
      }
    }
  }
}

KERNEL_CASES(ConvertBf16, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t count : kCounts) {
      Case& c = cases.New(NameOf(count), kind);
      c.Runs(ConvertBf16Args{
          .out = c.Output<BFloat16>(count), .x = c.Input<float>(count), .count = count});
    }
  }
}

KERNEL_CASES(WidenF32, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t count : kCounts) {
      Case& c = cases.New(NameOf(count), kind);
      c.Runs(WidenF32Args{
          .out = c.Output<float>(count), .x = c.Input<BFloat16>(count), .count = count});
    }
  }
}

TEST(Gradient, AccumulateRoundsOnce) {
  // 1 + 2^-12 times itself is 1 + 2^-11 + 2^-24; less 1 + 2^-11 leaves 2^-24, which a rounded
  // product would have lost.
  float acc = -(1.0f + 0x1p-11f);
  const float x = 1.0f + 0x1p-12f;
  ThreadPool pool(1);
  kernels::Run(Context{pool, KernelsFor(Isa::kReference)}, AccumulateArgs{&acc, &x, 1, x});
  EXPECT_EQ(acc, 0x1p-24f);
}

}  // namespace
}  // namespace lockstep::kernels
