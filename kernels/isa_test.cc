// SPDX-License-Identifier: Apache-2.0
//
// The choice of instruction set and its override.
#include "kernels/isa.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/dispatch.h"

namespace lockstep::kernels {
namespace {

class ChooseIsaTest : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("LOCKSTEP_ISA"); }
  void TearDown() override { unsetenv("LOCKSTEP_ISA"); }
};

TEST_F(ChooseIsaTest, TakesTheFastest) { EXPECT_EQ(ChooseIsa().value(), AvailableIsas().back()); }

TEST_F(ChooseIsaTest, ObeysTheOverride) {
  for (Isa isa : AvailableIsas()) {
    setenv("LOCKSTEP_ISA", std::string(IsaName(isa)).c_str(), 1);
    EXPECT_EQ(ChooseIsa().value(), isa);
    EXPECT_EQ(KernelsFor(isa).isa, isa);
  }
}

TEST_F(ChooseIsaTest, RefusesWhatTheMachineCannotRun) {
  setenv("LOCKSTEP_ISA", "mmx", 1);
  const absl::StatusOr<Isa> isa = ChooseIsa();
  ASSERT_FALSE(isa.ok());
  EXPECT_THAT(std::string(isa.status().message()), ::testing::HasSubstr("\"mmx\""));
  EXPECT_THAT(std::string(isa.status().message()), ::testing::HasSubstr("reference"));
}

}  // namespace
}  // namespace lockstep::kernels
