// SPDX-License-Identifier: Apache-2.0
#include "worker/status_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json Working() {
  return {{"state", "working"},
          {"steps_attested", 7},
          {"tokens_per_second", 41.6},
          {"outbox", {{"pending", 1}, {"refused", 0}}},
          {"lease",
           {{"run", std::string(64, 'a')}, {"begin_step", 8}, {"end_step", 12}, {"next_step", 9}}},
          {"coordinators", {{{"address", "https://a:1"}}}}};
}

TEST(StatusText, SaysHowFarTheLeaseIs) {
  EXPECT_EQ(StatusLine(Working()),
            "steps 8 to 11: 1 of 4 done (25 %), 42 tokens/s; 7 attested since the start");
  EXPECT_THAT(StatusText(Working()),
              AllOf(HasSubstr("state        working\n"),
                    HasSubstr("run aaaaaaaaaaaaaaaa, steps 8 to 11, 1 of 4 done (25 %)\n"),
                    HasSubstr("outbox       1 to send\n"), HasSubstr("https://a:1\n")));
}

TEST(StatusText, SaysWhyNothingIsDone) {
  nlohmann::json status = {{"state", "paused"},
                           {"reason", "on battery: the machine runs on its battery"}};
  EXPECT_EQ(StatusLine(status), "paused: on battery: the machine runs on its battery");
  status = {
      {"state", "idle"},
      {"coordinators",
       {{{"address", "https://a:1"}, {"no_work", "nothing to do"}, {"asked_again_in_ms", 40000}},
        {{"address", "https://b:1"},
         {"last_error", "away"},
         {"advice", "do this"},
         {"asked_again_in_ms", 90000}}}}};
  EXPECT_EQ(StatusLine(status), "idle: no work now (nothing to do); asked again in 40s");
  EXPECT_THAT(StatusText(status),
              AllOf(HasSubstr("https://b:1: away; asked again in 1m30s\n"),
                    HasSubstr("what it means: do this\n"), Not(HasSubstr("lease "))));
}

// The other end of the socket may be of another version.
TEST(StatusText, TakesWhateverComes) {
  for (const char* text :
       {"{}", R"({"lease":{}})", R"({"lease":{"begin_step":5,"end_step":2,"next_step":9}})",
        R"({"state":"idle","coordinators":[{}]})", "[]", "null", R"({"state":5,"lease":[]})",
        R"({"state":"working","lease":{"begin_step":-1},"tokens_per_second":"x"})",
        R"({"state":"idle","coordinators":[5],"outbox":7})", R"({"coordinators":{}})"}) {
    const nlohmann::json status = nlohmann::json::parse(text);
    EXPECT_NE(StatusText(status), "") << text;
    EXPECT_NE(StatusLine(status), "") << text;
  }
}

}  // namespace
}  // namespace lockstep::worker
