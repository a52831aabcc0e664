// SPDX-License-Identifier: Apache-2.0
//
// The loop over steps, and what is kept of each.
#include "engine/run/train_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/step_log.h"
#include "audit/verdict.h"
#include "base/directory.h"
#include "base/status.h"
#include "engine/optimizer/dead_tensors.h"
#include "engine/step_batch.h"
#include "engine/stopwatch.h"

namespace lockstep::engine {
namespace {

class Trainer {
 public:
  Trainer(Backend& backend, const RunFolder& run, const TrainOptions& options,
          const TrainHooks& hooks)
      : backend_(backend), run_(run), options_(options), hooks_(hooks) {}

  absl::StatusOr<TrainSummary> Run() {
    LOCKSTEP_ASSIGN_OR_RETURN(const RunLock lock, RunLock::Acquire(run_));
    LOCKSTEP_RETURN_IF_ERROR(Open());
    TrainSummary summary = {.next_step = 0, .end = end_, .chain = {}, .interrupted = false};
    const absl::Status status = Steps();
    if (absl::IsCancelled(status)) {
      summary.interrupted = true;
    } else {
      LOCKSTEP_RETURN_IF_ERROR(status);
    }
    summary.next_step = state_->step;
    summary.chain = state_->chain;
    return summary;
  }

 private:
  bool Interrupted() const { return hooks_.interrupted && hooks_.interrupted(); }

  absl::Status Open() {
    LOCKSTEP_RETURN_IF_ERROR(RemoveLeftOvers());
    LOCKSTEP_ASSIGN_OR_RETURN(StepReader data, OpenRunData(run_));
    data_ = std::make_unique<StepReader>(std::move(data));
    LOCKSTEP_ASSIGN_OR_RETURN(audit::StepLog log, audit::StepLog::Open(run_.StepLogPath()));
    log_ = std::make_unique<audit::StepLog>(std::move(log));
    const bool spill_partials = options_.memory.spill_partials;
    LOCKSTEP_ASSIGN_OR_RETURN(
        step_, TrainStep::Create(backend_, run_.manifest(),
                                 {.recompute = options_.memory.recompute,
                                  .spill_folder = spill_partials ? options_.spill_folder : ""}));
    dead_ = std::make_unique<DeadTensorWatch>(step_->layout().table(),
                                              run_.manifest().recipe.dead_tensor_steps);
    LOCKSTEP_ASSIGN_OR_RETURN(const StartPoint start, LoadLastState());
    end_ = *data_->schedule().steps();
    if (options_.stop_at) end_ = std::min(end_, *options_.stop_at);
    saved_ = start.checkpoint.empty() ? std::optional<uint64_t>() : state_->step;
    if (hooks_.started) hooks_.started(start, end_);
    return absl::OkStatus();
  }

  // The latest state that is whole. What is repeated after a damaged one must come out the same.
  absl::StatusOr<StartPoint> LoadLastState() {
    // A state beyond the log would leave a hole in it.
    const uint64_t logged = log_->records().empty() ? FirstStep() : log_->records().back().step + 1;
    LOCKSTEP_ASSIGN_OR_RETURN(StartPoint start, FindStart(run_, logged));
    while (true) {
      state_ = nullptr;  // its memory, before there is another
      LOCKSTEP_ASSIGN_OR_RETURN(
          state_, TrainState::Create(backend_, run_.manifest(), step_->layout(),
                                     options_.memory.spill_state ? options_.spill_folder : ""));
      const absl::Status status = LoadStart(backend_, run_, start, *state_, *data_, [](int64_t) {});
      if (status.ok()) return start;
      const bool last = start.checkpoint.empty() || (start.step == FirstStep() && start.step > 0);
      const bool damaged = absl::IsDataLoss(status) || absl::IsNotFound(status);
      if (!damaged || last) return status;
      if (hooks_.passed_over) hooks_.passed_over(start, status);
      if (start.step == 0) {
        start = StartPoint{};
      } else {
        LOCKSTEP_ASSIGN_OR_RETURN(start, FindStart(run_, start.step - 1));
      }
    }
  }

  uint64_t FirstStep() const {
    return run_.manifest().parent ? static_cast<uint64_t>(run_.manifest().parent->step) : 0;
  }

  // Half-made checkpoints of processes that were killed: this one holds the run's lock.
  absl::Status RemoveLeftOvers() const {
    const std::string folder = run_.path() + "/checkpoints";
    LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
    for (const std::string& name : names) {
      if (!name.starts_with(".lockstep-")) continue;
      LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(absl::StrCat(folder, "/", name)));
    }
    return absl::OkStatus();
  }

  absl::Status Steps() {
    // The very first state is kept too: whoever replays the first steps need not make it.
    if (state_->step == FirstStep() && saved_ != state_->step) LOCKSTEP_RETURN_IF_ERROR(Save());
    const auto every = static_cast<uint64_t>(run_.manifest().checkpoint_every);
    while (state_->step < end_) {
      const absl::Status status = Interrupted() ? absl::CancelledError("interrupted") : Step();
      const bool stopped = !status.ok();
      const bool due = state_->step % every == 0 || state_->step == end_ || stopped;
      // What a step left in ruins is not saved; what an interrupt left as it was is.
      const bool whole = status.ok() || absl::IsCancelled(status) || stop_after_save_;
      if (due && whole && saved_ != state_->step) LOCKSTEP_RETURN_IF_ERROR(Save());
      if (stopped) return status;
    }
    return log_->Sync();
  }

  absl::Status Step() {
    LOCKSTEP_ASSIGN_OR_RETURN(const StepBatch batch, ReadStepBatch(*data_));
    LOCKSTEP_ASSIGN_OR_RETURN(const StepResult result,
                              step_->Run(*state_, batch, [&] { return Interrupted(); }));
    const audit::StepRecord& record = result.record;
    const audit::StepRecord* published = log_->Find(record.step);
    if (published != nullptr) {
      LOCKSTEP_RETURN_IF_ERROR(CheckRepeated(*published, record));
    } else {
      LOCKSTEP_RETURN_IF_ERROR(log_->Append(record));
    }
    LOCKSTEP_RETURN_IF_ERROR(KeepLeaves(result));
    stop_after_save_ = true;
    if (hooks_.stepped) {
      LOCKSTEP_RETURN_IF_ERROR(hooks_.stepped(result, *state_, published != nullptr));
    }
    LOCKSTEP_RETURN_IF_ERROR(dead_->Observe(result.gradient_squares));
    if (result.halt) {
      return absl::FailedPreconditionError(absl::StrCat(
          "stopped after step ", record.step, ": ", record.spike.events, " spikes since step ",
          record.spike.events_since, ", more than the recipe's spike_halt_events of ",
          run_.manifest().recipe.spike_halt_events));
    }
    stop_after_save_ = false;
    return absl::OkStatus();
  }

  absl::Status CheckRepeated(const audit::StepRecord& published,
                             const audit::StepRecord& record) const {
    const std::optional<audit::Difference> difference = audit::CompareRecords(published, record);
    if (!difference) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", record.step, " does not repeat its own record in ", run_.StepLogPath(), ": ",
        difference->field, ": expected ", difference->expected, ", found ", difference->found,
        "; this machine, this build or a file has changed what it computes"));
  }

  absl::Status KeepLeaves(const StepResult& result) const {
    const uint64_t step = result.record.step;
    if (options_.keep_leaves == 0) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(run_.WriteLeaves(LeavesOf(result, *state_)));
    const auto keep = static_cast<uint64_t>(options_.keep_leaves);
    if (options_.keep_leaves < 0 || step < keep) return absl::OkStatus();
    return run_.RemoveLeaves(step - keep);
  }

  absl::Status Save() {
    double seconds = 0;
    const std::string folder = run_.CheckpointPath(state_->step);
    {
      const Stopwatch watch(&seconds);
      LOCKSTEP_RETURN_IF_ERROR(log_->Sync());
      const audit::StepRecord* last = state_->step == 0 ? nullptr : log_->Find(state_->step - 1);
      if (last == nullptr && state_->step != 0) {
        // A segment's first state is its parent's, and stays there.
        saved_ = state_->step;
        return absl::OkStatus();
      }
      // One that is there belongs to a log that lost its end: the same state, made again.
      LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(folder));
      LOCKSTEP_RETURN_IF_ERROR(
          SaveCheckpoint(backend_, run_.manifest(), *state_, last, folder, [](int64_t) {}));
    }
    saved_ = state_->step;
    if (hooks_.saved) hooks_.saved(folder, seconds);
    return RemoveOldCheckpoints();
  }

  absl::Status RemoveOldCheckpoints() const {
    if (options_.keep_checkpoints < 0) return absl::OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, run_.Checkpoints());
    const auto keep = static_cast<size_t>(std::max<int64_t>(options_.keep_checkpoints, 1));
    for (size_t i = 0; i + keep < steps.size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(run_.CheckpointPath(steps[i])));
    }
    return absl::OkStatus();
  }

  Backend& backend_;
  const RunFolder& run_;
  const TrainOptions& options_;
  const TrainHooks& hooks_;
  std::unique_ptr<StepReader> data_;
  std::unique_ptr<audit::StepLog> log_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<TrainState> state_;
  std::unique_ptr<DeadTensorWatch> dead_;
  uint64_t end_ = 0;
  std::optional<uint64_t> saved_;  // the step before which the last checkpoint stands
  bool stop_after_save_ = false;   // the step is whole, though an error follows it
};

}  // namespace

absl::StatusOr<TrainSummary> Train(Backend& backend, const RunFolder& run,
                                   const TrainOptions& options, const TrainHooks& hooks) {
  return Trainer(backend, run, options, hooks).Run();
}

}  // namespace lockstep::engine
