// SPDX-License-Identifier: Apache-2.0
//
// The batch schedule in closed form. See schedule.h.
#include "engine/data/schedule.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

// Tokens, windows and steps stay below it, so that no product or sum here overflows.
constexpr uint64_t kTokensMax = uint64_t{1} << 60;
constexpr uint64_t kWindowsPerStepMax = uint64_t{1} << 32;

absl::Status CheckPhase(const std::vector<BatchPhase>& phases, size_t i) {
  const BatchPhase& phase = phases[i];
  if (phase.windows_per_step < 1 || phase.windows_per_step > kWindowsPerStepMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected 1 to ", kWindowsPerStepMax, " windows a step, found ", phase.windows_per_step));
  }
  if (!phase.until_tokens) {
    if (i + 1 == phases.size()) return absl::OkStatus();
    return absl::InvalidArgumentError("expected tokens that it lasts to: another phase follows");
  }
  const uint64_t above = i == 0 ? 0 : *phases[i - 1].until_tokens;
  if (*phase.until_tokens <= above || *phase.until_tokens > kTokensMax) {
    return absl::InvalidArgumentError(absl::StrCat("expected it to last to more than ", above,
                                                   " and at most ", kTokensMax, " tokens, found ",
                                                   *phase.until_tokens));
  }
  return absl::OkStatus();
}

absl::Status PastEnd(absl::string_view what, uint64_t number) {
  return absl::OutOfRangeError(absl::StrCat(what, " ", number, " is past the end of the run"));
}

absl::Status BeforeStart(absl::string_view what, uint64_t number, uint64_t start) {
  return absl::OutOfRangeError(absl::StrCat(what, " ", number, " is before ", what, " ", start,
                                            ", where this schedule starts"));
}

}  // namespace

absl::StatusOr<BatchSchedule> BatchSchedule::Create(std::vector<BatchPhase> phases,
                                                    uint64_t seq_len, const ScheduleStart& start) {
  if (seq_len < 1 || seq_len > kSeqLenMax || phases.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch schedule: expected a phase or more, and a sequence length of 1 to ",
                     kSeqLenMax, ", found ", phases.size(), " phases and ", seq_len));
  }
  if (start.window > kTokensMax / seq_len || start.step > start.window) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch schedule: expected a start at a step with a window or more for each "
        "step before, and at most ",
        kTokensMax, " tokens before, found step ", start.step, " and window ", start.window));
  }
  std::vector<ScheduleStart> starts = {start};
  for (size_t i = 0; i < phases.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPhase(phases, i), "batch schedule, phase ", i);
    if (!phases[i].until_tokens) break;
    const ScheduleStart begin = starts.back();
    const uint64_t consumed = begin.window * seq_len;
    const uint64_t until = *phases[i].until_tokens;
    const uint64_t step_tokens = phases[i].windows_per_step * seq_len;
    // A step before may have gone past this phase altogether; the phase has then no steps.
    const uint64_t steps = until <= consumed ? 0 : (until - consumed - 1) / step_tokens + 1;
    starts.push_back({begin.step + steps, begin.window + steps * phases[i].windows_per_step});
  }
  return BatchSchedule(std::move(phases), seq_len, std::move(starts));
}

BatchSchedule::BatchSchedule(std::vector<BatchPhase> phases, uint64_t seq_len,
                             std::vector<ScheduleStart> starts)
    : phases_(std::move(phases)), seq_len_(seq_len), starts_(std::move(starts)) {}

BatchSchedule BatchSchedule::Open1b() {
  absl::StatusOr<BatchSchedule> schedule = Create(
      {{768, 4'000'000'000}, {1152, 360'000'000'000}, {2304, 400'000'000'000}}, /*seq_len=*/4096);
  LOCKSTEP_CHECK(schedule.ok());
  return *std::move(schedule);
}

std::optional<uint64_t> BatchSchedule::steps() const {
  if (!phases_.back().until_tokens) return std::nullopt;
  return starts_.back().step;
}

absl::StatusOr<StepWindows> BatchSchedule::WindowsOfStep(uint64_t step) const {
  if (step < starts_[0].step) return BeforeStart("step", step, starts_[0].step);
  size_t i = 0;
  while (i + 1 < starts_.size() && step >= starts_[i + 1].step) ++i;
  if (i == phases_.size() || step >= kTokensMax) return PastEnd("step", step);
  const uint64_t steps_in = step - starts_[i].step;
  const uint64_t per_step = phases_[i].windows_per_step;
  if (steps_in > (kTokensMax / seq_len_ - 1) / per_step) return PastEnd("step", step);
  const uint64_t begin = starts_[i].window + steps_in * per_step;
  return StepWindows{begin, begin + per_step, begin * seq_len_};
}

absl::StatusOr<uint64_t> BatchSchedule::StepOfWindow(uint64_t window) const {
  if (window < starts_[0].window) return BeforeStart("window", window, starts_[0].window);
  size_t i = 0;
  while (i + 1 < starts_.size() && window >= starts_[i + 1].window) ++i;
  if (i == phases_.size() || window >= kTokensMax / seq_len_) return PastEnd("window", window);
  return starts_[i].step + (window - starts_[i].window) / phases_[i].windows_per_step;
}

absl::StatusOr<uint64_t> BatchSchedule::WindowBefore(uint64_t step) const {
  if (step == starts_[0].step) return starts_[0].window;
  if (step < starts_[0].step) return BeforeStart("step", step, starts_[0].step);
  // The state after the last step stands at the end of its windows.
  LOCKSTEP_ASSIGN_OR_RETURN(const StepWindows before, WindowsOfStep(step - 1));
  return before.end;
}

absl::StatusOr<std::vector<BatchPhase>> ParseBatchPhases(absl::string_view text) {
  std::vector<BatchPhase> phases;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> numbers = absl::StrSplit(part, '@');
    BatchPhase phase;
    uint64_t until = 0;
    const bool good = numbers.size() <= 2 &&
                      absl::SimpleAtoi(numbers[0], &phase.windows_per_step) &&
                      (numbers.size() < 2 || absl::SimpleAtoi(numbers[1], &until));
    if (!good) {
      return absl::InvalidArgumentError(absl::StrCat(
          "batch schedule: expected WINDOWS@TOKENS,...,WINDOWS[@TOKENS], found \"", part, "\""));
    }
    if (numbers.size() == 2) phase.until_tokens = until;
    phases.push_back(phase);
  }
  return phases;
}

absl::Status CheckCursorAtStep(const BatchSchedule& schedule, uint64_t step,
                               const StreamCursor& cursor) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t expected, schedule.WindowBefore(step));
  if (cursor.window == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "step ", step, " begins at window ", expected, ", but the stream cursor stands at window ",
      cursor.window, ": they are of different checkpoints"));
}

}  // namespace lockstep::engine
