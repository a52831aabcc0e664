// SPDX-License-Identifier: Apache-2.0
//
// Which windows each optimizer step takes: the batch size in phases that are bounded in consumed
// tokens (the paper, Table 4). Pure functions of the schedule; no stream, no state.
#ifndef LOCKSTEP_ENGINE_DATA_SCHEDULE_H_
#define LOCKSTEP_ENGINE_DATA_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/cursor.h"

namespace lockstep::engine {

struct BatchPhase {
  uint64_t windows_per_step = 0;         // at least 1
  std::optional<uint64_t> until_tokens;  // ascending; only the last phase may go on for ever
  bool operator==(const BatchPhase&) const = default;
};

// Windows begin ... end - 1, and the tokens that the run has consumed before the step.
struct StepWindows {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t tokens_before = 0;
  bool operator==(const StepWindows&) const = default;
};

// The first step that a schedule speaks of, and its first window.
struct ScheduleStart {
  uint64_t step = 0;
  uint64_t window = 0;
};

// Steps count from 0. A window counts as seq_len consumed tokens: its inputs. Step s belongs to the
// first phase whose until_tokens exceeds what was consumed before it, so the step that crosses a
// boundary is the last of its phase, whole; the run ends with the step that reaches the last
// phase's until_tokens.
class BatchSchedule {
 public:
  // A segment that changes the schedule of a run in its middle starts where the run stands; its
  // until_tokens count from the run's beginning all the same. InvalidArgument names the phase that
  // breaks a rule.
  static absl::StatusOr<BatchSchedule> Create(std::vector<BatchPhase> phases, uint64_t seq_len,
                                              const ScheduleStart& start = {});

  // Table 4: 768 windows to 4e9 tokens, 1,152 to 360e9, 2,304 to 400e9, sequences of 4,096: 80,957
  // steps.
  static BatchSchedule Open1b();

  // One past the last step; nullopt: without an end.
  std::optional<uint64_t> steps() const;
  const ScheduleStart& start() const { return starts_.front(); }
  const std::vector<BatchPhase>& phases() const { return phases_; }
  uint64_t seq_len() const { return seq_len_; }

  // OutOfRange past the end of the run, or before the schedule's start.
  absl::StatusOr<StepWindows> WindowsOfStep(uint64_t step) const;
  absl::StatusOr<uint64_t> StepOfWindow(uint64_t window) const;
  // Where the stream stands before `step`; the run's end, after which no step comes, has a place
  // too.
  absl::StatusOr<uint64_t> WindowBefore(uint64_t step) const;

 private:
  BatchSchedule(std::vector<BatchPhase> phases, uint64_t seq_len,
                std::vector<ScheduleStart> starts);

  std::vector<BatchPhase> phases_;
  uint64_t seq_len_;
  std::vector<ScheduleStart> starts_;  // by phase; one more, the end, if the last phase has one
};

// "768@4000000000,1152@360000000000,2304": windows a step, and the tokens that the phase lasts to.
absl::StatusOr<std::vector<BatchPhase>> ParseBatchPhases(absl::string_view text);

// The logical rank that owns a window of a step: m mod ranks for the step's window m, counted from
// its first. A rank takes its windows in ascending order. ranks >= 1.
inline uint64_t RankOfWindow(const StepWindows& step, uint64_t window, uint64_t ranks) {
  return (window - step.begin) % ranks;
}

// That the state before `step` goes with this cursor: FailedPrecondition names the two places
// otherwise. Whoever loads a checkpoint asks this, so that the model of one step never continues
// with the data of another. No cursor needs to name its step for that: a stream has one cursor for
// each window, and a schedule one step at most that begins there.
absl::Status CheckCursorAtStep(const BatchSchedule& schedule, uint64_t step,
                               const StreamCursor& cursor);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_SCHEDULE_H_
