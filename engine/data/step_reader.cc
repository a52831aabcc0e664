// SPDX-License-Identifier: Apache-2.0
//
// Steps of a run off a stream. See step_reader.h.
#include "engine/data/step_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<StepReader> StepReader::Open(std::shared_ptr<const CorpusReader> corpus,
                                            uint64_t seed, BatchSchedule schedule) {
  LOCKSTEP_ASSIGN_OR_RETURN(Stream stream,
                            Stream::Open(std::move(corpus), seed, schedule.seq_len()));
  return StepReader(std::move(stream), std::move(schedule));
}

StepReader::StepReader(Stream stream, BatchSchedule schedule)
    : stream_(std::move(stream)), schedule_(std::move(schedule)), step_(schedule_.start().step) {}

absl::Status StepReader::Resume(uint64_t step, const StreamCursor& cursor) {
  LOCKSTEP_RETURN_IF_ERROR(CheckCursorAtStep(schedule_, step, cursor));
  LOCKSTEP_RETURN_IF_ERROR(stream_.Seek(cursor));
  step_ = step;
  return absl::OkStatus();
}

absl::Status StepReader::SkipTo(uint64_t step, absl::FunctionRef<void(int64_t windows)> progress,
                                absl::FunctionRef<bool()> interrupted) {
  LOCKSTEP_RETURN_IF_ERROR(CheckCursorAtStep(schedule_, step_, stream_.cursor()));
  if (step < step_) {
    return absl::InvalidArgumentError(absl::StrCat("cannot skip back from step ", step_,
                                                   " to step ", step,
                                                   "; resume with an earlier cursor"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t window, schedule_.WindowBefore(step));
  Stream stream = stream_;  // so that a walk that stops between steps leaves no trace
  LOCKSTEP_RETURN_IF_ERROR(WalkTo(stream, window, progress, interrupted));
  stream_ = std::move(stream);
  step_ = step;
  return absl::OkStatus();
}

absl::StatusOr<Step> StepReader::Next() {
  LOCKSTEP_RETURN_IF_ERROR(CheckCursorAtStep(schedule_, step_, stream_.cursor()));
  Stream stream = stream_;
  Step step;
  LOCKSTEP_ASSIGN_OR_RETURN(step.range, schedule_.WindowsOfStep(step_));
  step.step = step_;
  step.before = stream.cursor();
  step.starts.reserve(step.windows() + 1);
  step.starts.push_back(0);
  std::vector<TokenSpan> window;
  for (uint64_t m = 0; m < step.windows(); ++m) {
    LOCKSTEP_RETURN_IF_ERROR(stream.Next(&window), "step ", step_);
    step.spans.insert(step.spans.end(), window.begin(), window.end());
    step.starts.push_back(step.spans.size());
  }
  step.after = stream.cursor();
  stream_ = std::move(stream);
  ++step_;
  return step;
}

absl::Status StepReader::ReadWindow(const Step& step, uint64_t m, std::span<int32_t> out) const {
  if (m >= step.windows()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", step.step, " has ", step.windows(), " windows, not window ", m));
  }
  return WithContext(stream_.ReadTokens(step.Trace(m), out),
                     absl::StrCat("step ", step.step, ", window ", m));
}

}  // namespace lockstep::engine
