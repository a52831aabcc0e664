// SPDX-License-Identifier: Apache-2.0
//
// Leases: who gets which steps, for how long, and how a lease ends.

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/encoding.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/core/parse.h"
#include "coordinator/core/random_bytes.h"
#include "coordinator/core/reasons.h"
#include "coordinator/core/work.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {
namespace {

// What a machine that does not know its speed is taken to have: it gets a step or two.
constexpr double kTokensPerSecondUnknown = 500;

constexpr size_t kDetailBytesMax = 1'024;

// A stranger's words, fit to be shown in one line.
std::string Plain(absl::string_view text) {
  std::string plain(text.substr(0, kDetailBytesMax));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return absl::ascii_iscntrl(c); }, ' ');
  return plain;
}

LeaseState StateAfter(ReleaseReason reason) {
  switch (reason) {
    case ReleaseReason::kFinished:
      return LeaseState::kDone;
    case ReleaseReason::kInconclusive:
      return LeaseState::kInconclusive;
    case ReleaseReason::kCanceled:
      return LeaseState::kCanceled;
  }
  return LeaseState::kCanceled;
}

uint64_t FirstFalse(const std::vector<bool>& flags) {
  return static_cast<uint64_t>(std::find(flags.begin(), flags.end(), false) - flags.begin());
}

}  // namespace

absl::StatusOr<AcquireAnswer> Coordinator::AcquireLease(const Caller& caller,
                                                        const Capabilities& machine,
                                                        int64_t steps_max) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTime(caller));
  if (!audit::IsBackendClass(machine.backend_class)) {
    return Refused(absl::StatusCode::kInvalidArgument, "BACKEND_UNKNOWN",
                   "capabilities.backend_class is none that attestations may name");
  }
  return Write<AcquireAnswer>(
      SourceOf(caller.key.Id()), 3, [&](Work& work) -> absl::StatusOr<AcquireAnswer> {
        LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t key_id, RequireWorker(caller.key));
        LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> before, Answered(work, caller));
        if (before) return AnswerAgain(work, *before);
        if (std::optional<AcquireAnswer> early = TooEarly(key_id, work.now_ms)) {
          return *std::move(early);
        }
        LOCKSTEP_RETURN_IF_ERROR(ExpireLeases(work));
        LOCKSTEP_RETURN_IF_ERROR(CheckAttempt(work, caller));
        LOCKSTEP_ASSIGN_OR_RETURN(AcquireAnswer answer,
                                  Grant(work, caller, key_id, machine, steps_max));
        // Found by a look at everything that is published, which not everybody gets at any time.
        if (answer.no_work_reason == NoLeaseName(NoLease::kNoWork) ||
            answer.no_work_reason == NoLeaseName(NoLease::kMachineTooSmall)) {
          no_work_[ledger_.keys().keys()[key_id].first_id] = {
              .reason = answer.no_work_reason, .until_ms = work.now_ms + answer.retry_after_ms};
        }
        const std::string response =
            answer.lease ? absl::StrCat("lease ", answer.lease->lease.lease_id)
                         : absl::StrCat("none ", answer.retry_after_ms, " ", answer.no_work_reason);
        LOCKSTEP_RETURN_IF_ERROR(Remember(work, caller, response));
        return answer;
      });
}

std::optional<AcquireAnswer> Coordinator::TooEarly(uint32_t key_id, int64_t now_ms) const {
  const auto told = no_work_.find(ledger_.keys().keys()[key_id].first_id);
  if (told == no_work_.end() || told->second.until_ms <= now_ms) return std::nullopt;
  return AcquireAnswer{.no_work_reason = told->second.reason,
                       .retry_after_ms = told->second.until_ms - now_ms};
}

std::vector<bool> Coordinator::AttestedBy(const audit::RunLedger& run, uint32_t key_id,
                                          uint64_t first, uint64_t end) {
  std::vector<bool> attested;
  for (uint64_t step = first; step < end; ++step) {
    const std::vector<uint32_t> ids = run.AttestationsOf(step);
    attested.push_back(std::any_of(ids.begin(), ids.end(), [&](uint32_t id) {
      return run.attestations()[id].key_id == key_id;
    }));
  }
  return attested;
}

absl::StatusOr<AcquireAnswer> Coordinator::AnswerAgain(Work& work, const std::string& response) {
  const std::vector<std::string> words = absl::StrSplit(response, ' ');
  AcquireAnswer answer;
  if (words.size() == 3 && words[0] == "none" &&
      absl::SimpleAtoi(words[1], &answer.retry_after_ms)) {
    answer.no_work_reason = words[2];
    return answer;
  }
  if (words.size() != 2 || words[0] != "lease") {
    return absl::DataLossError("the store has an answer to an acquire of no known form");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const LeaseRow row, work.view().Lease(words[1]));
  const auto live = live_.find(row.lease_id);
  const int64_t lease_ms =
      live == live_.end() ? row.expires_ms - row.heartbeat_ms : live->second->lease_ms;
  const std::vector<bool> attested = AttestedBy(
      *ledger_.FindRun(row.run), ledger_.keys().FindById(Ed25519PublicKey{row.key.bytes}.Id()),
      row.first_step, row.end_step);
  answer.lease = LeaseGrant{
      .lease = row,
      .begin_step = row.first_step + FirstFalse(attested),
      .heartbeat_ms = std::min(options_.heartbeat_ms, std::max<int64_t>(lease_ms / 3, 1)),
      .lifetime_ms = std::max<int64_t>(row.bound_ms - work.now_ms, 0)};
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointFacts* const start,
                            StateAt(work.view(), row.run, row.first_step));
  if (start != nullptr) {
    answer.lease->start = start->announcement;
    answer.lease->start_source = ArtifactSourceOf(*start);
  }
  absl::StatusOr<CanaryRow> canary = work.view().Canary(row.lease_id);
  if (canary.ok()) {
    answer.lease->canary = *std::move(canary);
  } else if (!absl::IsNotFound(canary.status())) {
    return canary.status();
  }
  return answer;
}

// A key's leases belong to one attempt. One that was heard lately is alive, and another that asks
// is a copy of its folder; one that was not has gone, and what it held is free.
absl::Status Coordinator::CheckAttempt(Work& work, const Caller& caller) {
  std::vector<LiveLease*> abandoned;
  for (const auto& [id, lease] : live_) {
    if (lease->row.key != Digest{caller.key.bytes}) continue;
    if (lease->row.attempt_id == caller.attempt_id) continue;
    const int64_t alive_ms = lease->row.heartbeat_ms + options_.attempt_alive_ms - work.now_ms;
    if (alive_ms > 0) {
      return rpc::WithReason(
          absl::FailedPreconditionError("another process holds leases with this key, and was heard "
                                        "lately: is this a copy of its folder?"),
          "KEY_IN_USE", {{"retry_after_ms", absl::StrCat(alive_ms)}});
    }
    abandoned.push_back(lease.get());
  }
  for (LiveLease* lease : abandoned) {
    LOCKSTEP_RETURN_IF_ERROR(EndLease(work, *lease, LeaseState::kExpired));
  }
  return absl::OkStatus();
}

absl::StatusOr<AcquireAnswer> Coordinator::Grant(Work& work, const Caller& caller, uint32_t key_id,
                                                 const Capabilities& machine, int64_t steps_max) {
  Requester requester;
  requester.auditor = AuditorOf(key_id, machine.backend_class);
  requester.memory_bytes = machine.memory_bytes;
  requester.disk_bytes = machine.disk_bytes;
  requester.operations_per_second =
      machine.tokens_per_second > 0 ? machine.tokens_per_second : kTokensPerSecondUnknown;
  LOCKSTEP_ASSIGN_OR_RETURN(requester.trust, work.view().Trust(FirstKeyOf(key_id)));
  table_.CountLeases(caller.address, &requester);
  SchedulerPolicy policy = options_.policy;
  if (steps_max > 0) policy.steps_per_lease_max = std::min(policy.steps_per_lease_max, steps_max);

  const Snapshot all = table_.View(work.now_ms);
  std::vector<RunView> wanted;
  for (const RunView& run : all.runs) {
    const bool listed =
        std::find(machine.runs.begin(), machine.runs.end(), run.run) != machine.runs.end();
    if (machine.runs.empty() || listed) wanted.push_back(run);
  }
  const Decision decision = Schedule({.now_ms = work.now_ms, .runs = wanted}, requester, policy,
                                     [this] { return Uniform(); });
  if (!decision.lease) {
    return AcquireAnswer{.no_work_reason = std::string(NoLeaseName(decision.reason)),
                         .retry_after_ms = decision.retry_ms};
  }
  // The scheduler knows of matches that count. What the key has said besides (its openings are on
  // the way, or were not believed) it cannot say again.
  const audit::RunLedger& run = *ledger_.FindRun(decision.lease->run);
  std::vector<bool> attested =
      AttestedBy(run, key_id, run.first_step() + decision.lease->first_step,
                 run.first_step() + decision.lease->end_step);
  if (FirstFalse(attested) == attested.size() || (decision.lease->canary_step && attested.back())) {
    return AcquireAnswer{.no_work_reason = std::string(NoLeaseName(NoLease::kNoWork)),
                         .retry_after_ms = policy.retry_ms_min};
  }
  AcquireAnswer answer;
  LOCKSTEP_ASSIGN_OR_RETURN(answer.lease,
                            AddLease(work, caller, key_id, requester.auditor, machine.backend_class,
                                     *decision.lease, std::move(attested)));
  return answer;
}

absl::StatusOr<LeaseGrant> Coordinator::AddLease(Work& work, const Caller& caller, uint32_t key_id,
                                                 const Auditor& auditor, const std::string& backend,
                                                 const LeaseDecision& decision,
                                                 std::vector<bool> attested) {
  const audit::RunLedger& run = *ledger_.FindRun(decision.run);
  const uint32_t operator_id = ledger_.keys().keys()[key_id].operator_id;
  const uint32_t operator_key = ledger_.keys().operators()[operator_id].key_id;
  auto lease = std::make_unique<LiveLease>();
  lease->lease_ms = decision.lease_ms;
  lease->auditor = auditor;
  lease->backend = backend;
  lease->attested = std::move(attested);
  const auto id = RandomBytes<16>();
  lease->row = {.lease_id = HexEncode(id),
                .key = Digest{caller.key.bytes},
                .operator_key = Digest{ledger_.keys().keys()[operator_key].key.bytes},
                .address = caller.address,
                .attempt_id = caller.attempt_id,
                .nonce = Digest{RandomBytes<32>()},
                .run = decision.run,
                .first_step = run.first_step() + decision.first_step,
                .end_step = run.first_step() + decision.end_step,
                .state = LeaseState::kLive,
                .granted_ms = work.now_ms,
                .heartbeat_ms = work.now_ms,
                .expires_ms = work.now_ms + std::min(decision.lease_ms, decision.bound_ms),
                .bound_ms = work.now_ms + decision.bound_ms,
                .granted_unix_ms = time_->UnixMs()};
  LeaseGrant grant{.lease = lease->row,
                   .begin_step = lease->row.first_step + FirstFalse(lease->attested),
                   .heartbeat_ms = std::min(options_.heartbeat_ms, decision.lease_ms / 3),
                   .lifetime_ms = decision.bound_ms};
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointFacts* const start,
                            StateAt(work.view(), decision.run, lease->row.first_step));
  if (start != nullptr) {
    grant.start = start->announcement;
    grant.start_source = ArtifactSourceOf(*start);
  }
  work.changed = true;
  LOCKSTEP_RETURN_IF_ERROR(work.store().PutLease(lease->row));
  if (decision.canary_step) {
    const uint64_t step = run.first_step() + *decision.canary_step;
    grant.canary = MakeCanary(lease->row, *run.FindRecord(step));
    LOCKSTEP_RETURN_IF_ERROR(work.store().PutCanary(*grant.canary));
  }
  LOCKSTEP_RETURN_IF_ERROR(table_.AddLease({.lease_id = lease->row.lease_id,
                                            .run = decision.run,
                                            .first_step = decision.first_step,
                                            .end_step = decision.end_step,
                                            .steps_wanted = decision.steps_wanted,
                                            .auditor = auditor,
                                            .address = caller.address}));
  TellLease(work, lease->row, true);
  const absl::MutexLock lock(&mutex_);
  tallies_.AddSeen(key_id, time_->UnixMs());
  live_.emplace(grant.lease.lease_id, std::move(lease));
  return grant;
}

// What a wrong step would look like: the state and what leads to it are others, the data the same.
CanaryRow Coordinator::MakeCanary(const LeaseRow& lease, const audit::StepRecord& record) {
  audit::StepRecord wrong = record;
  wrong.parameters = Digest{RandomBytes<32>()};
  wrong.first_moment = Digest{RandomBytes<32>()};
  wrong.second_moment = Digest{RandomBytes<32>()};
  wrong.gradient = Digest{RandomBytes<32>()};
  wrong.transcript = Digest{RandomBytes<32>()};
  return {.lease_id = lease.lease_id,
          .key = lease.key,
          .run = lease.run,
          .step = record.step,
          .false_record = EncodeStepRecord(wrong)};
}

absl::StatusOr<Coordinator::LiveLease*> Coordinator::FindLive(Work& work,
                                                              const Ed25519PublicKey& key,
                                                              const std::string& attempt_id,
                                                              const std::string& lease_id) {
  const auto found = live_.find(lease_id);
  LeaseRow row;
  if (found != live_.end()) {
    row = found->second->row;
  } else {
    absl::StatusOr<LeaseRow> ended = work.view().Lease(lease_id);
    if (absl::IsNotFound(ended.status())) {
      return Refused(absl::StatusCode::kNotFound, "LEASE_UNKNOWN", "there never was such a lease");
    }
    if (!ended.ok()) return ended.status();
    row = *std::move(ended);
  }
  if (row.key != Digest{key.bytes} || row.attempt_id != attempt_id) {
    return Refused(absl::StatusCode::kPermissionDenied, "LEASE_FOREIGN",
                   "the lease is another key's, or another process's with this key");
  }
  const bool live = found != live_.end() && work.now_ms < std::min(row.expires_ms, row.bound_ms);
  if (live) return found->second.get();
  return Refused(absl::StatusCode::kFailedPrecondition, "LEASE_EXPIRED",
                 "the lease has ended: it ran out, was finished, or was released");
}

absl::StatusOr<bool> Coordinator::Heartbeat(const Caller& caller, const std::string& lease_id) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTime(caller));
  return Write<bool>(SourceOf(caller.key.Id()), 1, [&](Work& work) -> absl::StatusOr<bool> {
    LOCKSTEP_ASSIGN_OR_RETURN(LiveLease* const lease,
                              FindLive(work, caller.key, caller.attempt_id, lease_id));
    LeaseRow row = lease->row;
    row.heartbeat_ms = work.now_ms;
    row.expires_ms = std::min(work.now_ms + lease->lease_ms, row.bound_ms);
    work.changed = true;
    LOCKSTEP_RETURN_IF_ERROR(work.store().PutLease(row));
    const uint32_t key_id = ledger_.keys().Find(caller.key);
    {
      const absl::MutexLock lock(&mutex_);
      lease->row = row;
      tallies_.AddSeen(key_id, time_->UnixMs());
    }
    if (!ledger_.keys().IsGood(key_id)) return false;
    // Its holder's time is better spent elsewhere then.
    LOCKSTEP_ASSIGN_OR_RETURN(const bool settled, IsSettled(work, *lease));
    return !settled;
  });
}

absl::StatusOr<bool> Coordinator::IsSettled(Work& work, const LiveLease& lease) const {
  const LeaseRow& row = lease.row;
  const audit::RunLedger& run = *ledger_.FindRun(row.run);
  for (uint64_t step = row.first_step; step < row.end_step; ++step) {
    if (lease.attested[step - row.first_step]) continue;
    if (run.states()[step - run.first_step()] != audit::StepState::kConfirmed) return false;
  }
  // A lease with a canary goes to its end all the same.
  const absl::Status canary = work.view().Canary(row.lease_id).status();
  if (absl::IsNotFound(canary)) return true;
  LOCKSTEP_RETURN_IF_ERROR(canary);
  return false;
}

absl::Status Coordinator::ReleaseLease(const Caller& caller, const std::string& lease_id,
                                       ReleaseReason reason, absl::string_view detail) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTime(caller));
  return Write<bool>(SourceOf(caller.key.Id()), 3,
                     [&](Work& work) -> absl::StatusOr<bool> {
                       LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> before,
                                                 Answered(work, caller));
                       if (before) return true;
                       const absl::StatusOr<LiveLease*> found =
                           FindLive(work, caller.key, caller.attempt_id, lease_id);
                       LOCKSTEP_RETURN_IF_ERROR(Remember(work, caller, "released"));
                       if (rpc::ReasonOf(found.status()) == "LEASE_EXPIRED") {
                         // Its last attestation ended it, which its holder need not know.
                         LOCKSTEP_ASSIGN_OR_RETURN(const LeaseRow row, work.view().Lease(lease_id));
                         if (row.state == LeaseState::kDone) return true;
                       }
                       LOCKSTEP_RETURN_IF_ERROR(found.status());
                       // Others were faster, or the state was no good: it is not the holder's
                       // fault.
                       bool excused = false;
                       if (reason == ReleaseReason::kInconclusive) {
                         LOCKSTEP_ASSIGN_OR_RETURN(excused, DoubtState(work, (*found)->row));
                       } else {
                         LOCKSTEP_ASSIGN_OR_RETURN(excused, IsSettled(work, **found));
                       }
                       LOCKSTEP_RETURN_IF_ERROR(
                           EndLease(work, **found, StateAfter(reason), excused, Plain(detail)));
                       return true;
                     })
      .status();
}

// The last thing done with the lease, which is gone then.
absl::Status Coordinator::EndLease(Work& work, LiveLease& lease, LeaseState state, bool excused,
                                   std::string detail) {
  work.changed = true;
  LeaseRow row = lease.row;
  row.state = state;
  row.ended_unix_ms = time_->UnixMs();
  row.detail = std::move(detail);
  LOCKSTEP_RETURN_IF_ERROR(work.store().PutLease(row));
  absl::StatusOr<CanaryRow> canary = work.view().Canary(row.lease_id);
  if (!canary.ok() && !absl::IsNotFound(canary.status())) return canary.status();
  const bool unanswered = canary.ok() && canary->state == CanaryState::kOpen;
  if (unanswered) {
    canary->state = CanaryState::kExpired;
    LOCKSTEP_RETURN_IF_ERROR(work.store().PutCanary(*canary));
  }
  if (!excused) {
    LOCKSTEP_RETURN_IF_ERROR(
        ChangeTrust(work, Ed25519PublicKey{row.key.bytes}, [&](const KeyTrust& trust) {
          return AfterLease(trust, lease, state, unanswered, work.now_ms);
        }));
  }
  LOCKSTEP_RETURN_IF_ERROR(table_.EndLease(row.lease_id));
  TellLease(work, row, false);
  const absl::MutexLock lock(&mutex_);
  live_.erase(row.lease_id);
  return absl::OkStatus();
}

// Who takes work and never does any gets less of it. One who hands back a lease with a false record
// in it may have seen that: it costs as if it had run out, or who looks would draw again for
// nothing.
KeyTrust Coordinator::AfterLease(const KeyTrust& trust, const LiveLease& lease, LeaseState state,
                                 bool unanswered_canary, int64_t now_ms) const {
  const TrustPolicy& policy = options_.policy.trust;
  if (state == LeaseState::kExpired || state == LeaseState::kInconclusive || unanswered_canary) {
    return AfterExpired(trust, policy, now_ms);
  }
  if (lease.Finished()) return lease.contributed ? AfterGoodLease(trust, policy) : trust;
  return lease.contributed ? AfterPartOfLease(trust) : AfterUndoneLease(trust, policy, now_ms);
}

absl::Status Coordinator::ExpireLeases(Work& work) {
  std::vector<LiveLease*> over;
  for (const auto& [id, lease] : live_) {
    if (work.now_ms >= std::min(lease->row.expires_ms, lease->row.bound_ms)) {
      over.push_back(lease.get());
    }
  }
  for (LiveLease* lease : over) {
    LOCKSTEP_RETURN_IF_ERROR(EndLease(work, *lease, LeaseState::kExpired));
  }
  return absl::OkStatus();
}

absl::Status Coordinator::FinishStep(Work& work, LiveLease& lease, uint64_t step) {
  work.changed = true;
  lease.attested[step - lease.row.first_step] = true;
  const audit::RunLedger& run = *ledger_.FindRun(lease.row.run);
  LOCKSTEP_RETURN_IF_ERROR(table_.EndStep(lease.row.lease_id, step - run.first_step()));
  if (!lease.Finished()) return absl::OkStatus();
  return EndLease(work, lease, LeaseState::kDone);
}

}  // namespace lockstep::coordinator
