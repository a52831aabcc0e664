// SPDX-License-Identifier: Apache-2.0
//
// Conformance and known values of the residual add.
#include "kernels/residual_add/residual_add.h"

#include "gtest/gtest.h"
#include "kernels/testing/conformance.h"

namespace lockstep::kernels {
namespace {

KERNEL_CASES(ResidualAdd, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t count : {1, 3, 4, 7, 8, 15, 16, 17, 33, 1000}) {
      Case& c = cases.New(std::to_string(count) + " elements", kind);
      c.Runs(ResidualAddArgs{.out = c.Output<BFloat16>(count),
                             .x = c.Input<BFloat16>(count),
                             .y = c.Input<BFloat16>(count),
                             .count = count});
    }
    Case& c = cases.New("in place", kind);
    BFloat16* x = c.InOut<BFloat16>(100);
    c.Runs(ResidualAddArgs{.out = x, .x = x, .y = c.Input<BFloat16>(100), .count = 100});
  }
}

TEST(ResidualAdd, RoundsToNearestEven) {
  const BFloat16 x[3] = {{0x3f80}, {0x3f80}, {0x3f81}};  // 1, 1, 1 + 2^-7
  const BFloat16 y[3] = {{0x3b80}, {0x3b81}, {0x3b80}};  // half an ulp, a little more, half an ulp
  BFloat16 out[3];
  ThreadPool pool(1);
  kernels::Run(Context{pool, KernelsFor(Isa::kReference)},
               ResidualAddArgs{.out = out, .x = x, .y = y, .count = 3});
  EXPECT_EQ(out[0].bits, 0x3f80);
  EXPECT_EQ(out[1].bits, 0x3f81);
  EXPECT_EQ(out[2].bits, 0x3f82);
}

}  // namespace
}  // namespace lockstep::kernels
