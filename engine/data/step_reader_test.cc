// SPDX-License-Identifier: Apache-2.0
//
// Steps of runs against the stream's model: on any number of ranks, that may change at any step;
// and faults that other data loaders had, each by name.
#include "engine/data/step_reader.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "engine/data/testing/memory_corpus.h"
#include "engine/data/testing/stream_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using testing::Flat;
using testing::FlatWindow;
using ::testing::HasSubstr;
using testing::MakeMemoryCorpus;
using testing::MemoryCorpus;
using testing::MemorySource;
using testing::Model;
using testing::Tokens;
using testing::Trial;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;

bool Never() { return false; }
void Nothing(int64_t) {}

BatchSchedule Constant(uint64_t windows_per_step, uint64_t seq_len) {
  return *BatchSchedule::Create({{windows_per_step, std::nullopt}}, seq_len);
}

StepReader Open(const Trial& trial, BatchSchedule schedule) {
  absl::StatusOr<StepReader> data =
      StepReader::Open(trial.corpus.reader, trial.seed, std::move(schedule));
  EXPECT_THAT(data, IsOk());
  return *std::move(data);
}

FlatWindow WindowOf(const StepReader& data, const Step& step, uint64_t m) {
  std::vector<int32_t> tokens(data.window_tokens());
  EXPECT_THAT(data.ReadWindow(step, m, tokens), IsOk());
  return Flat(step.Trace(m), tokens);
}

void ExpectStep(const StepReader& data, const Step& step, Trial& trial) {
  for (uint64_t m = 0; m < step.windows(); ++m) {
    ASSERT_EQ(WindowOf(data, step, m),
              Flat(trial.model.Window(step.range.begin + m, trial.seq_len + 1)))
        << "step " << step.step << ", window " << m;
  }
}

// What a checkpoint holds of the data: bytes, for any number of ranks.
struct Checkpoint {
  uint64_t step = 0;
  std::string cursor;
};

// One step on `ranks` ranks, each a process of its own that resumes from the checkpoint: together
// they read the model's windows, each once, and all come to the same next checkpoint.
Checkpoint TrainStep(Trial& trial, const BatchSchedule& schedule, const Checkpoint& from,
                     uint64_t ranks) {
  std::map<uint64_t, int> taken;
  Checkpoint to;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    StepReader data = Open(trial, schedule);
    EXPECT_THAT(data.Resume(from.step, *DecodeCursor(AsBytes(from.cursor))), IsOk());
    const absl::StatusOr<Step> step = data.Next();
    EXPECT_THAT(step, IsOk());
    for (uint64_t m = 0; m < step->windows(); ++m) {
      const uint64_t window = step->range.begin + m;
      if (RankOfWindow(step->range, window, ranks) != rank) continue;
      EXPECT_EQ(WindowOf(data, *step, m), Flat(trial.model.Window(window, trial.seq_len + 1)))
          << "window " << window;
      ++taken[window];
    }
    const std::string end = EncodeCursor(step->after);
    if (rank == 0) to = {data.step(), end};
    EXPECT_EQ(end, to.cursor) << "ranks end at different places";
    EXPECT_EQ(end, EncodeCursor(data.cursor()));
  }
  const StepWindows range = *schedule.WindowsOfStep(from.step);
  EXPECT_EQ(taken.size(), range.end - range.begin);
  for (const auto& [window, times] : taken) EXPECT_EQ(times, 1) << window;
  return to;
}

// Worlds of 1 to 64 ranks; at each step the run is re-sharded onto another number of them.
TEST(StepReader, AnyWorldSizeReadsTheSameWindowsAlsoAfterResharding) {
  for (uint64_t world = 1; world <= 64; ++world) {
    SCOPED_TRACE(absl::StrCat("world ", world));
    Trial trial(1000 + world);
    const BatchSchedule schedule = Constant(64, trial.seq_len);
    Checkpoint checkpoint = {0, EncodeCursor(trial.Open().cursor())};
    for (uint64_t ranks : {world, 1 + (world * 7) % 64, uint64_t{1}}) {
      checkpoint = TrainStep(trial, schedule, checkpoint, ranks);
      if (HasFailure()) return;
    }
  }
}

TEST(StepReader, StepsAreTheModelsThroughPhases) {
  for (uint64_t number = 0; number < 60; ++number) {
    SCOPED_TRACE(absl::StrCat("trial ", number));
    Trial trial(2000 + number);
    const uint64_t tokens = trial.seq_len;
    const auto schedule =
        BatchSchedule::Create({{2, 6 * tokens}, {5, 30 * tokens}, {9, 60 * tokens}}, trial.seq_len);
    ASSERT_THAT(schedule, IsOk());
    StepReader data = Open(trial, *schedule);
    uint64_t windows = 0;
    std::string cursor = EncodeCursor(data.cursor());
    while (data.step() < *schedule->steps()) {
      const absl::StatusOr<Step> step = data.Next();
      ASSERT_THAT(step, IsOk());
      EXPECT_EQ(step->range.begin, windows);
      EXPECT_EQ(step->range.tokens_before, windows * tokens);
      EXPECT_EQ(EncodeCursor(step->before), cursor);
      ASSERT_NO_FATAL_FAILURE(ExpectStep(data, *step, trial));
      windows = step->range.end;
      cursor = EncodeCursor(step->after);
      EXPECT_EQ(step->after.window, windows);
    }
    EXPECT_THAT(data.Next(), StatusIs(kOutOfRange, HasSubstr("end of the run")));
    EXPECT_THAT(data.Resume(data.step(), data.cursor()), IsOk());  // the last checkpoint is one too
  }
}

TEST(StepReader, SkippingStepsIsTakingThem) {
  Trial trial(31);
  StepReader taker = Open(trial, Constant(7, trial.seq_len));
  StepReader skipper = Open(trial, Constant(7, trial.seq_len));
  for (int i = 0; i < 12; ++i) ASSERT_THAT(taker.Next(), IsOk());
  ASSERT_THAT(skipper.SkipTo(12, Nothing, Never), IsOk());
  EXPECT_EQ(skipper.cursor(), taker.cursor());
  EXPECT_EQ(skipper.step(), 12);
  EXPECT_THAT(skipper.SkipTo(11, Nothing, Never), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(skipper.SkipTo(40, Nothing, [] { return true; }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(skipper.cursor(), taker.cursor());
  EXPECT_EQ(trial.corpus.files->reads[ShardFile::kTokens], 0);
}

TEST(StepReader, SegmentTakesUpTheRunWithAnotherSchedule) {
  Trial trial(32);
  StepReader first = Open(trial, Constant(4, trial.seq_len));
  for (int i = 0; i < 5; ++i) ASSERT_THAT(first.Next(), IsOk());
  const auto schedule =
      BatchSchedule::Create({{9, std::nullopt}}, trial.seq_len, {.step = 5, .window = 20});
  ASSERT_THAT(schedule, IsOk());
  StepReader second = Open(trial, *schedule);
  EXPECT_THAT(second.Next(), StatusIs(kFailedPrecondition));  // it does not stand at window 20 yet
  ASSERT_THAT(second.Resume(5, first.cursor()), IsOk());
  const absl::StatusOr<Step> step = second.Next();
  ASSERT_THAT(step, IsOk());
  EXPECT_EQ(step->range, (StepWindows{20, 29, 20 * trial.seq_len}));
  ExpectStep(second, *step, trial);
}

TEST(StepReader, FailedStepCanBeAskedForAgain) {
  int failures = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    SCOPED_TRACE(absl::StrCat("trial ", number));
    Trial trial(3000 + number);
    StepReader data = Open(trial, Constant(6, trial.seq_len));
    for (int i = 0; i < 8; ++i) {
      trial.corpus.files->reads_left = static_cast<int>(trial.dice.Below(3));
      const StreamCursor before = data.cursor();
      absl::StatusOr<Step> step = data.Next();
      trial.corpus.files->reads_left.reset();
      if (!step.ok()) {
        ++failures;
        EXPECT_EQ(data.cursor(), before);
        EXPECT_EQ(data.step(), i);
        step = data.Next();
      }
      ASSERT_THAT(step, IsOk());
      ASSERT_NO_FATAL_FAILURE(ExpectStep(data, *step, trial));
    }
  }
  EXPECT_GT(failures, 50);
}

TEST(StepReader, ReadWindowRefusesWindowsThatTheStepDoesNotHave) {
  Trial trial(33);
  StepReader data = Open(trial, Constant(3, trial.seq_len));
  const absl::StatusOr<Step> step = data.Next();
  ASSERT_THAT(step, IsOk());
  std::vector<int32_t> tokens(data.window_tokens());
  EXPECT_THAT(data.ReadWindow(*step, 3, tokens), StatusIs(absl::StatusCode::kInvalidArgument));
}

// ---- Faults that others had.

// A checkpoint put together from the weights of one step and the loader of another.
TEST(Regression, CursorOfOneStepWithTheModelOfAnotherIsRefused) {
  Trial trial(41);
  StepReader data = Open(trial, Constant(8, trial.seq_len));
  std::vector<StreamCursor> cursors = {data.cursor()};
  for (int i = 0; i < 6; ++i) cursors.push_back(data.Next()->after);
  for (uint64_t model = 0; model < cursors.size(); ++model) {
    for (uint64_t loader = 0; loader < cursors.size(); ++loader) {
      StepReader resumed = Open(trial, Constant(8, trial.seq_len));
      const absl::Status status = resumed.Resume(model, cursors[loader]);
      if (model == loader) {
        EXPECT_THAT(status, IsOk());
        continue;
      }
      EXPECT_THAT(status,
                  StatusIs(kFailedPrecondition,
                           HasSubstr(absl::StrCat("step ", model, " begins at window ", 8 * model,
                                                  ", but the stream cursor "
                                                  "stands at window ",
                                                  8 * loader))));
      EXPECT_EQ(resumed.step(), 0);
      EXPECT_EQ(resumed.cursor(), cursors[0]);
    }
  }
  // Nor does the loader's state of another seed or corpus pass, at the right window.
  Trial other(42);
  StepReader foreign = Open(other, Constant(8, other.seq_len));
  EXPECT_THAT(data.Resume(0, foreign.cursor()), StatusIs(absl::StatusCode::kInvalidArgument));
}

// Loader state kept by rank: with fewer ranks at the restart, some of it was dropped, and the
// documents behind it were never seen.
TEST(Regression, ResumeOnFewerRanksDropsNoLoaderState) {
  Trial trial(43);
  const BatchSchedule schedule = Constant(48, trial.seq_len);
  Checkpoint checkpoint = {0, EncodeCursor(trial.Open().cursor())};
  for (uint64_t ranks : {48, 16, 7, 3, 1, 48}) {
    checkpoint = TrainStep(trial, schedule, checkpoint, ranks);
    if (HasFailure()) return;
  }
}

// Saved when the last document of an epoch had just been drawn, the loader began the next epoch
// twice over, or left it out.
TEST(Regression, NoEpochIsSkippedWhenResumingAtItsEnd) {
  // Epochs of 3 documents of 4 tokens: windows of 12 end with the epoch, windows of 6 in its middle
  // too, and windows of 5 and 7 cut its last document.
  const std::vector<MemorySource> sources = {
      {"a", {{Tokens(3, 1), Tokens(3, 2)}, {Tokens(3, 3)}}, {}}};
  const MemoryCorpus corpus = MakeMemoryCorpus(sources);
  for (const uint64_t seq_len : {11, 5, 4, 6}) {
    SCOPED_TRACE(absl::StrCat("sequences of ", seq_len));
    Model model(sources, 7);
    auto saved = StepReader::Open(corpus.reader, 7, Constant(1, seq_len));
    ASSERT_THAT(saved, IsOk());
    int at_end = 0;
    for (uint64_t window = 0; window < 40; ++window) {
      auto resumed = StepReader::Open(corpus.reader, 7, Constant(1, seq_len));
      ASSERT_THAT(resumed->Resume(window, *DecodeCursor(AsBytes(EncodeCursor(saved->cursor())))),
                  IsOk());
      at_end += saved->cursor().sources[0].documents == 0;
      for (uint64_t next = window; next < window + 4; ++next) {
        const auto step = resumed->Next();
        ASSERT_THAT(step, IsOk());
        ASSERT_EQ(WindowOf(*resumed, *step, 0), Flat(model.Window(next, seq_len + 1)))
            << "window " << next << " after resuming at " << window;
      }
      ASSERT_THAT(saved->Next(), IsOk());
    }
    EXPECT_GT(at_end, 10);
  }
}

// The rest of the document that the last window had cut was lost, or came twice.
TEST(Regression, CarriedOverTokensAreNeitherLostNorRepeated) {
  Tokens document;
  for (int i = 1; i < 1000; ++i) document.push_back(i);
  const MemoryCorpus corpus = MakeMemoryCorpus({{"a", {{document}}, {}}});
  const BatchSchedule schedule = Constant(1, 6);
  std::string cursor = EncodeCursor(StepReader::Open(corpus.reader, 1, schedule)->cursor());
  int32_t expected = 1;
  for (uint64_t step = 0; step < 400; ++step) {  // resumed before every step
    auto data = StepReader::Open(corpus.reader, 1, schedule);
    ASSERT_THAT(data->Resume(step, *DecodeCursor(AsBytes(cursor))), IsOk());
    const auto next = data->Next();
    ASSERT_THAT(next, IsOk());
    std::vector<int32_t> tokens(7);
    ASSERT_THAT(data->ReadWindow(*next, 0, tokens), IsOk());
    for (const int32_t token : tokens) {
      ASSERT_EQ(token, expected) << "step " << step;
      expected = (expected + 1) % 1000;  // the separator is 0
    }
    cursor = EncodeCursor(next->after);
  }
}

}  // namespace
}  // namespace lockstep::engine
