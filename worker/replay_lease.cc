// SPDX-License-Identifier: Apache-2.0
//
// The engine's replay with attestations behind it.
#include "worker/replay_lease.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/step_record.h"
#include "base/directory.h"
#include "base/logging.h"
#include "base/status.h"
#include "engine/run/replay.h"
#include "engine/state/checkpoint.h"

namespace lockstep::worker {
namespace {

class LeaseReplayer {
 public:
  LeaseReplayer(const ReplaySetting& setting, const WorkLease& lease, const ReplayLeaseHooks& hooks,
                LeaseReport* report)
      : setting_(setting), lease_(lease), hooks_(hooks), report_(report) {}

  // An error is the reason of an inconclusive end.
  absl::Status Run() {
    uint64_t next = lease_.begin;
    while (next < lease_.end && setting_.outbox.Knows(setting_.origin, lease_.run_id, next)) ++next;
    report_->next_step = next;
    if (next == lease_.end) {
      report_->verdict = audit::Verdict::kMatch;
      return absl::OkStatus();
    }
    absl::StatusOr<bool> again = ReplayFrom(next);
    while (again.ok() && *again) again = ReplayFrom(next);
    return again.status();
  }

 private:
  // True if a state of our own was bad, and is gone now.
  absl::StatusOr<bool> ReplayFrom(uint64_t next) {
    engine::ReplayOptions options;
    options.begin = next;
    options.end = lease_.end;
    std::vector<std::string> mirrors = lease_.mirrors;
    mirrors.insert(mirrors.end(), setting_.mirrors.begin(), setting_.mirrors.end());
    LOCKSTEP_ASSIGN_OR_RETURN(
        options.start,
        setting_.folder.FetchStart(lease_, next, setting_.cache, setting_.client, mirrors));
    // Others would stay for good: each is as large as the run's state.
    LOCKSTEP_RETURN_IF_ERROR(setting_.folder.DropStates(options.start->step));
    options.corpus = setting_.folder.Corpus(mirrors, setting_.client.options());
    options.memory = setting_.memory;
    options.spill_folder = setting_.folder.spill_folder();
    last_.reset();
    begun_ = false;
    saved_at_ = setting_.clock->Monotonic();

    const engine::ReplayReport replay = engine::Replay(
        setting_.backend, setting_.folder.run(), lease_.records, options,
        {.interrupted = hooks_.interrupted,
         .started = [&](const engine::StartPoint&) { begun_ = true; },
         .stepped = [&](const engine::StepResult& result, const audit::Difference* difference,
                        engine::TrainState& state) { return Stepped(result, difference, state); },
         .canceled = [&](engine::TrainState& state) { Save(state); }});
    if (!begun_ && absl::IsDataLoss(replay.reason) && !options.start->checkpoint.empty()) {
      const bool ours = options.start->step != lease_.start_step || lease_.start_files.empty();
      LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(options.start->checkpoint));
      // The lease's own may be damaged in the cache: the next try fetches it again.
      for (const LeaseFile& file : lease_.start_files) setting_.cache.Discard(file.sha256);
      LOCKSTEP_LOG_WARNING("dropped {}: {}", options.start->checkpoint, replay.reason);
      if (ours) return true;
    }
    return Conclude(replay);
  }

  absl::StatusOr<bool> Conclude(const engine::ReplayReport& replay) {
    report_->difference = replay.difference;
    if (replay.verdict == audit::Verdict::kInconclusive) return replay.reason;
    if (replay.verdict == audit::Verdict::kMismatch && !attested_mismatch_) {
      const audit::Difference& d = *replay.difference;
      return absl::FailedPreconditionError(absl::StrCat(
          "step ", d.step, " differs before the lease's first step ", lease_.begin, ": ", d.field,
          " ", d.place, ": expected ", d.expected, "; found ", d.found));
    }
    LOCKSTEP_RETURN_IF_ERROR(failure_);  // of the outbox: the mismatch is not signed
    report_->verdict = replay.verdict;
    return false;
  }

  absl::Status Stepped(const engine::StepResult& result, const audit::Difference* difference,
                       engine::TrainState& state) {
    const uint64_t step = result.record.step;
    if (step >= lease_.begin && !setting_.outbox.Knows(setting_.origin, lease_.run_id, step)) {
      absl::StatusOr<OutboxItem> item =
          MakeAttestation(lease_, setting_.origin, setting_.witness, setting_.key, result,
                          difference, setting_.clock->Now());
      failure_ = item.ok() ? setting_.outbox.Add(*item) : item.status();
      LOCKSTEP_RETURN_IF_ERROR(failure_);
      ++report_->attested;
    }
    if (difference != nullptr) {
      attested_mismatch_ = step >= lease_.begin;
      if (hooks_.stepped) hooks_.stepped(step + 1);
      return absl::OkStatus();
    }
    last_ = result.record;
    report_->next_step = std::max(report_->next_step, step + 1);
    const bool end = step + 1 == lease_.end;
    if ((end && setting_.keep_last) ||
        (!end && setting_.clock->Monotonic() - saved_at_ >= setting_.checkpoint_every)) {
      Save(state);
    }
    if (hooks_.stepped) hooks_.stepped(step + 1);
    return absl::OkStatus();
  }

  // A state that cannot be saved costs time later, and nothing else.
  void Save(engine::TrainState& state) {
    if (!last_) return;  // where it started: there already
    const std::string path = setting_.folder.run().CheckpointPath(state.step);
    absl::Status status = RemoveDirectory(path);
    if (status.ok()) {
      status = engine::SaveCheckpoint(setting_.backend, setting_.folder.run().manifest(), state,
                                      &*last_, path, [](int64_t) {});
    }
    if (status.ok()) status = setting_.folder.DropStates(state.step);
    saved_at_ = setting_.clock->Monotonic();
    report_->kept_state = status.ok() && state.step == lease_.end ? path : "";
    if (!status.ok()) LOCKSTEP_LOG_WARNING("the state before step {}: {}", state.step, status);
  }

  const ReplaySetting& setting_;
  const WorkLease& lease_;
  const ReplayLeaseHooks& hooks_;
  LeaseReport* report_;
  std::optional<audit::StepRecord> last_;  // of this call's last step
  bool begun_ = false;
  bool attested_mismatch_ = false;
  absl::Status failure_;
  absl::Duration saved_at_;
};

}  // namespace

LeaseReport ReplayLease(const ReplaySetting& setting, const WorkLease& lease,
                        const ReplayLeaseHooks& hooks) {
  LeaseReport report;
  report.reason = LeaseReplayer(setting, lease, hooks, &report).Run();
  return report;
}

}  // namespace lockstep::worker
