// SPDX-License-Identifier: Apache-2.0
//
// What reaches standard error: levels, both forms, escaping, and the end of a failed check.

#include "base/logging.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class LoggingTest : public ::testing::Test {
 protected:
  ~LoggingTest() override { EXPECT_THAT(SetUpLogging("info", "text"), IsOk()); }

  // What `log` writes to standard error.
  template <typename Function>
  static std::string Logged(Function log) {
    ::testing::internal::CaptureStderr();
    log();
    return ::testing::internal::GetCapturedStderr();
  }

  static std::string LoggedMessage(absl::string_view message) {
    return Logged([=] { LOCKSTEP_LOG_INFO("{}", message); });
  }
};

TEST_F(LoggingTest, TextLine) {
  ASSERT_THAT(SetUpLogging("info", "text"), IsOk());
  EXPECT_THAT(Logged([] { LOCKSTEP_LOG_WARNING("step {} took {:.1f} s", 7, 1.25); }),
              MatchesRegex("20..-..-..T..:..:..\\....Z W [0-9]+ logging_test.cc:[0-9]+\\] "
                           "step 7 took 1.2 s\n"));
}

TEST_F(LoggingTest, JsonLine) {
  ASSERT_THAT(SetUpLogging("info", "json"), IsOk());
  EXPECT_THAT(Logged([] { LOCKSTEP_LOG_ERROR("step {}", 7); }),
              MatchesRegex("\\{\"time\":\"20..-..-..T..:..:..\\....Z\",\"level\":\"error\","
                           "\"thread\":[0-9]+,\"source\":\"logging_test.cc:[0-9]+\","
                           "\"message\":\"step 7\"\\}\n"));
}

TEST_F(LoggingTest, LevelDecidesAndUnwantedArgumentsAreNotEvaluated) {
  int evaluated = 0;
  const auto log_all = [&evaluated] {
    LOCKSTEP_LOG_DEBUG("d{}", ++evaluated);
    LOCKSTEP_LOG_INFO("i{}", ++evaluated);
    LOCKSTEP_LOG_WARNING("w{}", ++evaluated);
    LOCKSTEP_LOG_ERROR("e{}", ++evaluated);
  };
  const std::vector<std::string> levels = {"off", "error", "warning", "info", "debug"};
  for (size_t i = 0; i < levels.size(); ++i) {
    ASSERT_THAT(SetUpLogging(levels[i], ""), IsOk());
    evaluated = 0;
    const std::string text = Logged(log_all);
    EXPECT_EQ(evaluated, i) << levels[i];
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), i) << levels[i];
  }
}

TEST_F(LoggingTest, UnknownWordsAreRefusedAndChangeNothing) {
  ASSERT_THAT(SetUpLogging("warning", "text"), IsOk());
  EXPECT_THAT(
      SetUpLogging("loud", "json"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("debug, info, warning, error or off"), HasSubstr("\"loud\""))));
  EXPECT_THAT(SetUpLogging("debug", "xml"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("text or json")));
  EXPECT_TRUE(LogEnabled(LogLevel::kWarning));
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  EXPECT_THAT(Logged([] { LOCKSTEP_LOG_ERROR("x"); }), StartsWith("20"));
}

TEST_F(LoggingTest, EmptyArgumentsTakeTheEnvironment) {
  ASSERT_EQ(setenv("LOCKSTEP_LOG_LEVEL", "error", 1), 0);
  ASSERT_EQ(setenv("LOCKSTEP_LOG_FORMAT", "json", 1), 0);
  EXPECT_THAT(SetUpLogging("", ""), IsOk());
  EXPECT_FALSE(LogEnabled(LogLevel::kWarning));
  EXPECT_THAT(Logged([] { LOCKSTEP_LOG_ERROR("x"); }), StartsWith("{"));
  EXPECT_THAT(SetUpLogging("debug", "text"), IsOk());
  EXPECT_TRUE(LogEnabled(LogLevel::kDebug));
  ASSERT_EQ(setenv("LOCKSTEP_LOG_LEVEL", "nonsense", 1), 0);
  EXPECT_THAT(SetUpLogging("", ""), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_EQ(unsetenv("LOCKSTEP_LOG_LEVEL"), 0);
  ASSERT_EQ(unsetenv("LOCKSTEP_LOG_FORMAT"), 0);
}

TEST_F(LoggingTest, AMessageCannotLeaveItsLine) {
  ASSERT_THAT(SetUpLogging("info", "text"), IsOk());
  EXPECT_THAT(LoggedMessage("a\nb\x1b[31m\x7f é {}"), EndsWith("] a\\nb\\x1b[31m\\x7f é {}\n"));
  ASSERT_THAT(SetUpLogging("info", "json"), IsOk());
  EXPECT_THAT(LoggedMessage("a\"b\\c\n\t é € 😀"),
              EndsWith(R"("message":"a\"b\\c\u000a\u0009 é € 😀"})"
                       "\n"));
}

TEST_F(LoggingTest, JsonReplacesWhatIsNotUtf8) {
  ASSERT_THAT(SetUpLogging("info", "json"), IsOk());
  // A stray continuation, an overlong form, a surrogate, a value above U+10FFFF, a cut sequence.
  for (const char* bad : {"\x80", "\xc0", "\xc1", "\xe0\x80", "\xed\xa0", "\xf0\x80", "\xf4\x90",
                          "\xf5", "\xff", "\xe2\x82", "\xf0\x9f\x98", "\xc3"}) {
    const std::string line = LoggedMessage(bad);
    EXPECT_THAT(line, HasSubstr("\"message\":\"\\ufffd"));
    for (const char c : line) EXPECT_LT(static_cast<uint8_t>(c), 0x80);
  }
}

TEST_F(LoggingTest, ThreadsDoNotMixLines) {
  ASSERT_THAT(SetUpLogging("info", "text"), IsOk());
  const std::string text = Logged([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 100; ++i) LOCKSTEP_LOG_INFO("{}", std::string(50, 'a' + t));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 400);
  for (int t = 0; t < 4; ++t) {
    const std::string whole = "] " + std::string(50, 'a' + t) + "\n";
    int lines = 0;
    for (size_t at = text.find(whole); at != std::string::npos; at = text.find(whole, at + 1)) {
      ++lines;
    }
    EXPECT_EQ(lines, 100);
  }
}

TEST_F(LoggingTest, FormatsStatusesAndViews) {
  ASSERT_THAT(SetUpLogging("info", "text"), IsOk());
  const absl::Status status = absl::NotFoundError("gone");
  EXPECT_THAT(Logged([&] { LOCKSTEP_LOG_INFO("{}|{}", status, status.message()); }),
              EndsWith("] NOT_FOUND: gone|gone\n"));
}

TEST_F(LoggingTest, CheckEndsTheProgramAndSaysWhy) {
  LOCKSTEP_CHECK(1 + 1 == 2);
  LOCKSTEP_CHECK(true, "never formatted {}", 1);
  EXPECT_DEATH(LOCKSTEP_CHECK(1 + 1 == 3),
               "C [0-9]+ logging_test.cc:[0-9]+\\] check failed: 1 \\+ 1 == 3");
  EXPECT_DEATH(LOCKSTEP_CHECK(false, "index {} of {}", 5, 3), "check failed: false: index 5 of 3");
}

TEST_F(LoggingTest, AFailedCheckIsNeverSilent) {
  ASSERT_THAT(SetUpLogging("off", "text"), IsOk());
  EXPECT_DEATH(LOCKSTEP_CHECK(false), "check failed: false");
}

}  // namespace
}  // namespace lockstep
