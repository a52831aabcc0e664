// SPDX-License-Identifier: Apache-2.0
//
// The status macros and the matchers that the tests of every folder use.

#include "base/status.h"

#include <memory>
#include <string>

#include "absl/strings/cord.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::Eq;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;

constexpr auto kNotFound = absl::StatusCode::kNotFound;

absl::Status Pass(const absl::Status& status, bool* went_on) {
  LOCKSTEP_RETURN_IF_ERROR(status);
  *went_on = true;
  return absl::OkStatus();
}

absl::Status PassWithContext(const absl::Status& status, int* evaluations) {
  LOCKSTEP_RETURN_IF_ERROR(status, "step ", ++*evaluations);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<int>> Twice(absl::StatusOr<std::unique_ptr<int>> n) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<int> value, std::move(n), "doubling ", "n");
  *value *= 2;
  return value;
}

absl::StatusOr<int> Sum(const absl::StatusOr<int>& a, const absl::StatusOr<int>& b) {
  int sum = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(sum, a);
  LOCKSTEP_ASSIGN_OR_RETURN(const int& other, b);
  return sum + other;
}

TEST(StatusMacros, ReturnIfError) {
  bool went_on = false;
  EXPECT_EQ(Pass(absl::NotFoundError("gone"), &went_on), absl::NotFoundError("gone"));
  EXPECT_FALSE(went_on);
  EXPECT_THAT(Pass(absl::OkStatus(), &went_on), IsOk());
  EXPECT_TRUE(went_on);
}

TEST(StatusMacros, ContextIsEvaluatedOnlyForAnError) {
  int evaluations = 0;
  EXPECT_THAT(PassWithContext(absl::OkStatus(), &evaluations), IsOk());
  EXPECT_EQ(evaluations, 0);
  EXPECT_EQ(PassWithContext(absl::NotFoundError("gone"), &evaluations),
            absl::NotFoundError("step 1: gone"));
}

TEST(StatusMacros, AssignOrReturn) {
  EXPECT_THAT(Twice(std::make_unique<int>(4)), IsOkAndHolds(Pointee(8)));
  EXPECT_EQ(Twice(absl::NotFoundError("gone")).status(), absl::NotFoundError("doubling n: gone"));
  EXPECT_THAT(Sum(1, 2), IsOkAndHolds(3));
  EXPECT_EQ(Sum(1, absl::NotFoundError("gone")).status(), absl::NotFoundError("gone"));
}

TEST(StatusMacros, ContextKeepsPayloads) {
  absl::Status status = absl::NotFoundError("gone");
  status.SetPayload("lockstep/test", absl::Cord("payload"));
  status = WithContext(status, "outer");
  EXPECT_EQ(status.message(), "outer: gone");
  EXPECT_EQ(status.GetPayload("lockstep/test"), absl::Cord("payload"));
  EXPECT_THAT(WithContext(absl::OkStatus(), "outer"), IsOk());
}

TEST(StatusMatchers, TellRightFromWrong) {
  const absl::Status ok;
  const absl::Status gone = absl::NotFoundError("it is gone");
  const absl::StatusOr<int> three = 3;
  const absl::StatusOr<int> none = gone;
  EXPECT_THAT(ok, IsOk());
  EXPECT_THAT(gone, Not(IsOk()));
  EXPECT_THAT(three, IsOk());
  EXPECT_THAT(none, Not(IsOk()));
  EXPECT_THAT(three, IsOkAndHolds(Gt(2)));
  EXPECT_THAT(three, Not(IsOkAndHolds(4)));
  EXPECT_THAT(none, Not(IsOkAndHolds(3)));
  EXPECT_THAT(none, StatusIs(kNotFound));
  EXPECT_THAT(three, Not(StatusIs(kNotFound)));
  EXPECT_THAT(gone, StatusIs(kNotFound, "it is gone"));
  EXPECT_THAT(gone, StatusIs(kNotFound, HasSubstr("gone")));
  EXPECT_THAT(gone, Not(StatusIs(kNotFound, Eq("gone"))));
  EXPECT_THAT(gone, Not(StatusIs(absl::StatusCode::kInternal, "it is gone")));
}

TEST(StatusMatchers, SayWhatIsWrong) {
  ::testing::StringMatchResultListener listener;
  const absl::StatusOr<int> none = absl::NotFoundError("gone");
  EXPECT_FALSE(::testing::ExplainMatchResult(IsOkAndHolds(3), none, &listener));
  EXPECT_EQ(listener.str(), "NOT_FOUND: gone");
  EXPECT_EQ(::testing::DescribeMatcher<absl::StatusOr<int>>(IsOkAndHolds(3)),
            "is OK and has a value that is equal to 3");
  EXPECT_EQ(::testing::DescribeMatcher<absl::Status>(StatusIs(kNotFound, "x")),
            "has the code NOT_FOUND and has a message that is equal to \"x\"");
}

}  // namespace
}  // namespace lockstep
