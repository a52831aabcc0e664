// SPDX-License-Identifier: Apache-2.0
//
// The batch schedule against the paper's own numbers, and against a loop that takes one step after
// another.
#include "engine/data/schedule.h"

#include <vector>

#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;

TEST(BatchSchedule, Open1bEndsAtTheStepThatThePaperNames) {
  const BatchSchedule schedule = BatchSchedule::Open1b();
  EXPECT_EQ(schedule.steps(), 80957);  // "at step 80,957 (400B tokens)", section 3.3.2
  EXPECT_THAT(schedule.WindowsOfStep(0), IsOkAndHolds(StepWindows{0, 768, 0}));
  EXPECT_THAT(schedule.WindowsOfStep(1271),
              IsOkAndHolds(StepWindows{1271 * 768, 1272 * 768, uint64_t{1271} * 3'145'728}));
  EXPECT_THAT(schedule.WindowsOfStep(1272),
              IsOkAndHolds(StepWindows{1272 * 768, 1272 * 768 + 1152, 4'001'366'016}));
  const uint64_t late = 1272 * 768 + 75446 * 1152;
  EXPECT_THAT(schedule.WindowsOfStep(1272 + 75446),
              IsOkAndHolds(StepWindows{late, late + 2304, 360'000'258'048}));
  EXPECT_THAT(schedule.WindowsOfStep(80957), StatusIs(kOutOfRange, HasSubstr("80957")));
  EXPECT_THAT(schedule.WindowsOfStep(UINT64_MAX), StatusIs(kOutOfRange));
}

TEST(BatchSchedule, AgreesWithALoopOverSteps) {
  for (uint64_t trial = 0; trial < 300; ++trial) {
    const auto draw = [&](uint64_t index, uint64_t bound) {
      return kernels::RandomBelow(/*seed=*/1, trial, index, bound);
    };
    const uint64_t seq_len = 1 + draw(0, 9);
    std::vector<BatchPhase> phases;
    uint64_t until = 0;
    for (uint64_t i = 0; i < 1 + draw(1, 4); ++i) {
      until += 1 + draw(10 + i, 60);  // often less than a step: phases without steps
      phases.push_back({1 + draw(20 + i, 12), until});
    }
    SCOPED_TRACE(trial);
    const auto schedule = BatchSchedule::Create(phases, seq_len);
    ASSERT_THAT(schedule, IsOk());
    uint64_t step = 0, window = 0;
    for (uint64_t consumed = 0; consumed < until; consumed = window * seq_len) {
      size_t phase = 0;
      while (consumed >= *phases[phase].until_tokens) ++phase;
      const uint64_t end = window + phases[phase].windows_per_step;
      ASSERT_THAT(schedule->WindowsOfStep(step), IsOkAndHolds(StepWindows{window, end, consumed}));
      for (; window < end; ++window)
        ASSERT_THAT(schedule->StepOfWindow(window), IsOkAndHolds(step));
      ++step;
    }
    EXPECT_EQ(schedule->steps(), step);
    EXPECT_THAT(schedule->WindowsOfStep(step), StatusIs(kOutOfRange));
    EXPECT_THAT(schedule->StepOfWindow(window), StatusIs(kOutOfRange));
  }
}

TEST(BatchSchedule, LastPhaseMayGoOnForEver) {
  const auto schedule = BatchSchedule::Create({{2, 30}, {3, std::nullopt}}, 10);
  ASSERT_THAT(schedule, IsOk());
  EXPECT_EQ(schedule->steps(), std::nullopt);
  EXPECT_THAT(schedule->WindowsOfStep(1'000'000),
              IsOkAndHolds(StepWindows{4 + 999'998 * 3, 7 + 999'998 * 3, (4 + 999'998 * 3) * 10}));
  EXPECT_THAT(schedule->WindowsOfStep(UINT64_MAX), StatusIs(kOutOfRange));
  EXPECT_THAT(schedule->StepOfWindow(UINT64_MAX), StatusIs(kOutOfRange));
}

TEST(BatchSchedule, StartsInTheMiddleOfARun) {
  // A run of 2 windows a step that at step 5, 10 windows and 80 tokens in, goes on with 4 windows a
  // step to 200 tokens: steps at 80, 112, 144 and 176 tokens.
  const auto schedule = BatchSchedule::Create({{4, 200}}, 8, {.step = 5, .window = 10});
  ASSERT_THAT(schedule, IsOk());
  EXPECT_EQ(schedule->steps(), 9);
  EXPECT_THAT(schedule->WindowsOfStep(5), IsOkAndHolds(StepWindows{10, 14, 80}));
  EXPECT_THAT(schedule->WindowsOfStep(8), IsOkAndHolds(StepWindows{22, 26, 176}));
  EXPECT_THAT(schedule->WindowsOfStep(9), StatusIs(kOutOfRange));
  EXPECT_THAT(schedule->WindowsOfStep(4), StatusIs(kOutOfRange, HasSubstr("before step 5")));
  EXPECT_THAT(schedule->StepOfWindow(9), StatusIs(kOutOfRange, HasSubstr("before window 10")));
  EXPECT_THAT(schedule->StepOfWindow(10), IsOkAndHolds(5));
  EXPECT_THAT(schedule->WindowBefore(5), IsOkAndHolds(10));
  EXPECT_THAT(schedule->WindowBefore(9), IsOkAndHolds(26));
  EXPECT_THAT(schedule->WindowBefore(4), StatusIs(kOutOfRange));
  EXPECT_THAT(schedule->WindowBefore(10), StatusIs(kOutOfRange));
  EXPECT_THAT(BatchSchedule::Create({{4, 200}}, 8, {.step = 5, .window = 4}), StatusIs(kInvalid));
  EXPECT_THAT(BatchSchedule::Create({{4, 200}}, 8, {.step = 0, .window = UINT64_MAX}),
              StatusIs(kInvalid));
}

TEST(BatchSchedule, RefusesPhasesThatMakeNoSense) {
  EXPECT_THAT(BatchSchedule::Create({}, 8), StatusIs(kInvalid));
  EXPECT_THAT(BatchSchedule::Create({{1, 10}}, 0), StatusIs(kInvalid));
  EXPECT_THAT(BatchSchedule::Create({{0, 10}}, 8), StatusIs(kInvalid, HasSubstr("phase 0")));
  EXPECT_THAT(BatchSchedule::Create({{1, 10}, {1, 10}}, 8),
              StatusIs(kInvalid, HasSubstr("phase 1")));
  EXPECT_THAT(BatchSchedule::Create({{1, std::nullopt}, {1, 10}}, 8), StatusIs(kInvalid));
  EXPECT_THAT(BatchSchedule::Create({{1, UINT64_MAX}}, 8), StatusIs(kInvalid));
  EXPECT_THAT(BatchSchedule::Create({{UINT64_MAX, 10}}, 8), StatusIs(kInvalid));
}

TEST(BatchSchedule, ParsesPhases) {
  EXPECT_THAT(ParseBatchPhases("768@4000000000,2304"),
              IsOkAndHolds(std::vector<BatchPhase>{{768, 4'000'000'000}, {2304, std::nullopt}}));
  for (const char* bad : {"", "x", "1@", "1@2@3", "1,,2", "-1", "1@99999999999999999999999"}) {
    EXPECT_THAT(ParseBatchPhases(bad), StatusIs(kInvalid)) << bad;
  }
}

TEST(BatchSchedule, RanksShareAStepEvenly) {
  const StepWindows step = {1000, 1768, 0};
  EXPECT_EQ(RankOfWindow(step, 1000, 48), 0);
  EXPECT_EQ(RankOfWindow(step, 1047, 48), 47);
  EXPECT_EQ(RankOfWindow(step, 1048, 48), 0);
}

TEST(BatchSchedule, CursorOfAnotherStepIsRefused) {
  const auto schedule = BatchSchedule::Create({{4, 40}, {8, 200}}, 10);
  ASSERT_THAT(schedule, IsOk());
  StreamCursor cursor;
  for (uint64_t step = 0; step <= *schedule->steps(); ++step) {
    for (uint64_t window = 0; window < 30; ++window) {
      cursor.window = window;
      const bool right = step == 0 ? window == 0 : window == schedule->WindowsOfStep(step - 1)->end;
      EXPECT_EQ(CheckCursorAtStep(*schedule, step, cursor).ok(), right) << step << " " << window;
    }
  }
  cursor.window = 5;
  EXPECT_THAT(CheckCursorAtStep(*schedule, 1, cursor),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("window 4")));
}

}  // namespace
}  // namespace lockstep::engine
