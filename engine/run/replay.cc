// SPDX-License-Identifier: Apache-2.0
//
// Replay: the same TrainStep as training, its records held against the published ones.
#include "engine/run/replay.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "engine/step_batch.h"

namespace lockstep::engine {
namespace {

using audit::StepRecord;
using audit::Verdict;

class Replayer {
 public:
  Replayer(Backend& backend, const RunFolder& run, const std::vector<StepRecord>& published,
           const ReplayOptions& options, const ReplayHooks& hooks, ReplayReport* report)
      : backend_(backend),
        run_(run),
        published_(published),
        options_(options),
        hooks_(hooks),
        report_(report) {}

  // The verdict; an error is the reason of an inconclusive one.
  absl::StatusOr<Verdict> Run() {
    LOCKSTEP_ASSIGN_OR_RETURN(StepReader data, OpenRunData(run_, options_.corpus));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::unique_ptr<TrainStep> step,
        TrainStep::Create(
            backend_, run_.manifest(),
            {.recompute = options_.memory.recompute,
             .spill_folder = options_.memory.spill_partials ? options_.spill_folder : ""}));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::unique_ptr<TrainState> state,
        TrainState::Create(backend_, run_.manifest(), step->layout(),
                           options_.memory.spill_state ? options_.spill_folder : ""));
    if (options_.start) {
      report_->start = *options_.start;
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(report_->start, FindStart(run_, options_.begin));
    }
    LOCKSTEP_RETURN_IF_ERROR(
        LoadStart(backend_, run_, report_->start, *state, data, [](int64_t) {}));
    if (hooks_.started) hooks_.started(report_->start);
    LOCKSTEP_ASSIGN_OR_RETURN(const bool begins_well, CompareStart(*state));
    if (!begins_well) return Verdict::kMismatch;

    while (state->step < options_.end) {
      absl::StatusOr<StepResult> computed = Next(*step, *state, data);
      if (absl::IsCancelled(computed.status()) && hooks_.canceled) hooks_.canceled(*state);
      LOCKSTEP_ASSIGN_OR_RETURN(const StepResult result, std::move(computed));
      LOCKSTEP_ASSIGN_OR_RETURN(const StepRecord* const published, Published(result.record.step));
      report_->difference = audit::CompareRecords(*published, result.record);
      const bool match = !report_->difference;
      if (!match) Locate(*published, result, *state, step->layout().table());
      const absl::Status heard =
          hooks_.stepped ? hooks_.stepped(result, match ? nullptr : &*report_->difference, *state)
                         : absl::OkStatus();
      if (!match) return Verdict::kMismatch;
      ++report_->matched;
      LOCKSTEP_RETURN_IF_ERROR(heard);
    }
    return Verdict::kMatch;
  }

 private:
  absl::StatusOr<StepResult> Next(TrainStep& step, TrainState& state, StepReader& data) const {
    const auto interrupted = [&] { return hooks_.interrupted && hooks_.interrupted(); };
    if (interrupted()) return absl::CancelledError("interrupted");
    LOCKSTEP_ASSIGN_OR_RETURN(const StepBatch batch, ReadStepBatch(data));
    return step.Run(state, batch, interrupted);
  }

  absl::StatusOr<const StepRecord*> Published(uint64_t step) const {
    if (published_.empty() || step < published_.front().step ||
        step - published_.front().step >= published_.size()) {
      return absl::NotFoundError(absl::StrCat("no record of step ", step, " is published"));
    }
    return &published_[step - published_.front().step];
  }

  // That the start is where the published chain says. A checkpoint proves only that it is the state
  // of the record that it carries.
  absl::StatusOr<bool> CompareStart(const TrainState& state) {
    LOCKSTEP_ASSIGN_OR_RETURN(const StepRecord* const next, Published(state.step));
    if (next->previous_chain == state.chain) return true;
    report_->difference = {.step = state.step,
                           .field = "previous_chain",
                           .expected = next->previous_chain.ToHex(),
                           .found = state.chain.ToHex(),
                           .place = "the state that the replay started from"};
    return false;
  }

  void Locate(const StepRecord& published, const StepResult& result, const TrainState& state,
              const audit::TensorTable& tensors) {
    const absl::StatusOr<audit::StepLeaves> leaves = run_.ReadLeaves(published.step);
    if (!leaves.ok() || !audit::CheckLeaves(*leaves, published).ok()) return;
    audit::LocateDifference(tensors, *leaves, LeavesOf(result, state), &*report_->difference);
  }

  Backend& backend_;
  const RunFolder& run_;
  const std::vector<StepRecord>& published_;
  const ReplayOptions& options_;
  const ReplayHooks& hooks_;
  ReplayReport* report_;
};

}  // namespace

ReplayReport Replay(Backend& backend, const RunFolder& run,
                    const std::vector<StepRecord>& published, const ReplayOptions& options,
                    const ReplayHooks& hooks) {
  ReplayReport report;
  const absl::StatusOr<Verdict> verdict =
      Replayer(backend, run, published, options, hooks, &report).Run();
  if (verdict.ok()) {
    report.verdict = *verdict;
  } else {
    report.reason = verdict.status();
  }
  return report;
}

}  // namespace lockstep::engine
