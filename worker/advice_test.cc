// SPDX-License-Identifier: Apache-2.0
#include "worker/advice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc_error.h"

namespace lockstep::worker {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

absl::Status Refusal(const char* reason, const rpc::Metadata& metadata = {}) {
  return rpc::WithReason(absl::FailedPreconditionError("no"), reason, metadata);
}

TEST(Advice, IsForWhatTheOwnerCanMend) {
  EXPECT_THAT(AdviceOn(Refusal("KEY_IN_USE")), HasSubstr("copied"));
  EXPECT_THAT(AdviceOn(Refusal("KEY_UNKNOWN")), HasSubstr("keys certify"));
  for (const absl::Status& status :
       {absl::OkStatus(), absl::UnavailableError("away"), Refusal("INTERNAL"), Refusal("")}) {
    EXPECT_EQ(AdviceOn(status), "") << status;
  }
}

TEST(Advice, WordsAreForPeople) {
  EXPECT_EQ(Words(Refusal("KEY_IN_USE", {{"retry_after_ms", "1"}})), "KEY_IN_USE: no");
  EXPECT_EQ(Words(absl::UnavailableError("away")), "UNAVAILABLE: away");
}

TEST(Advice, WhenToAskAgainIsAStrangersNumber) {
  const auto after = [](const char* ms) {
    return RetryAfter(Refusal("KEY_IN_USE", {{"retry_after_ms", ms}}));
  };
  EXPECT_THAT(after("1500"), Optional(absl::Milliseconds(1500)));
  EXPECT_THAT(after("0"), Optional(absl::ZeroDuration()));
  EXPECT_THAT(after("9223372036854775807"), Optional(absl::Hours(1)));
  for (const char* bad : {"", "-1", "x", "1e3", "99999999999999999999"}) {
    EXPECT_THAT(after(bad), Eq(std::nullopt)) << bad;
  }
  EXPECT_THAT(RetryAfter(Refusal("KEY_IN_USE")), Eq(std::nullopt));
  EXPECT_THAT(RetryAfter(absl::OkStatus()), Eq(std::nullopt));
}

}  // namespace
}  // namespace lockstep::worker
