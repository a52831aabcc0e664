// SPDX-License-Identifier: Apache-2.0
//
// Runs, records, states and artifacts.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "audit/ledger/refusal.h"
#include "base/merkle.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/core/parse.h"
#include "coordinator/core/reasons.h"
#include "coordinator/core/work.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {
namespace {

using audit::EntryKind;
using audit::EntryRef;
using audit::LogEntry;
using audit::RunLedger;

absl::Status RunUnknown(const Digest& run) {
  return Refused(absl::StatusCode::kNotFound, "RUN_UNKNOWN",
                 absl::StrCat("run ", run.ToHex(), " is not registered"));
}

int64_t ParametersOf(const audit::ModelConfig& model) {
  const int64_t layer = model.width * (model.qkv_width() + 3 * model.ffn_width + 2) +
                        model.query_width() * model.width;
  return 2 * model.vocab * model.width + model.layers * layer;
}

// Any reader of the log may compute these numbers; they decide nothing but who is asked.
constexpr int64_t kMemoryBytesPerParameter = 8;
constexpr int64_t kDiskBytesPerParameter = 12;

}  // namespace

absl::Status Coordinator::AddRun(const RunLedger& run) {
  const audit::RunManifest& manifest = run.registration().manifest;
  const int64_t parameters = ParametersOf(manifest.model);
  const auto tokens = static_cast<double>(
      manifest.batch.empty() ? 0 : manifest.batch.back().windows_per_step * manifest.model.seq_len);
  // Work is counted in tokens, as workers tell their speed.
  LOCKSTEP_RETURN_IF_ERROR(table_.AddRun({.run = run.run_id(),
                                          .trainer_operator = OperatorNameOf(run.trainer_key_id()),
                                          .quorum_operators = run.registration().quorum.operators,
                                          .quorum_backends = run.registration().quorum.backends,
                                          .memory_bytes = parameters * kMemoryBytesPerParameter,
                                          .disk_bytes = parameters * kDiskBytesPerParameter,
                                          .operations_per_step = tokens}));
  // A segment begins with a state of its parent's, which has to be announced.
  if (manifest.parent.has_value()) return absl::OkStatus();
  return table_.AddState(run.run_id(), 0);
}

absl::StatusOr<EntryRef> Coordinator::RegisterRun(const std::string& envelope,
                                                  const std::vector<ArtifactSource>& artifacts) {
  LOCKSTEP_ASSIGN_OR_RETURN(LogEntry entry, ParseAs(envelope, EntryKind::kRun));
  const auto& registration = std::get<audit::RunRegistration>(entry.payload());
  LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, registration.trainer_key));
  const Digest run_id = audit::RunIdOf(registration.manifest);
  const auto rows = static_cast<int64_t>(artifacts.size()) + 1;
  return Write<EntryRef>(SourceOf(run_id), rows, [&](Work& work) -> absl::StatusOr<EntryRef> {
    if (const RunLedger* known = ledger_.FindRun(run_id); known != nullptr) {
      if (known->entry().leaf_hash == entry.leaf_hash()) {
        LOCKSTEP_RETURN_IF_ERROR(PutArtifacts(work, artifacts));
        return known->entry();
      }
      return Refused(absl::StatusCode::kAlreadyExists, "RUN_EXISTS_DIFFERENTLY",
                     "this manifest is registered with another key, start or quorum");
    }
    if (ledger_.runs().size() >= options_.runs_max) {
      return Refused(absl::StatusCode::kResourceExhausted, "QUOTA_EXCEEDED",
                     "the coordinator takes no more runs");
    }
    LOCKSTEP_RETURN_IF_ERROR(PutArtifacts(work, artifacts));
    EntryRef where;
    absl::StatusOr<audit::Outcome> outcome =
        Append(work, entry, envelope, &run_id, nullptr, &where);
    if (!outcome.ok()) return WithWireReason(outcome.status(), EntryKind::kRun);
    LOCKSTEP_RETURN_IF_ERROR(AddRun(ledger_.runs()[outcome->run]));
    Tell(work, "run", absl::StrCat(R"({"run":")", run_id.ToHex(), "\"}"));
    return where;
  });
}

absl::StatusOr<Progress> Coordinator::GetProgress(const Digest& run_id) const {
  const absl::ReaderMutexLock lock(&mutex_);
  const RunLedger* run = ledger_.FindRun(run_id);
  if (run == nullptr) return RunUnknown(run_id);
  Progress progress{.next_step = run->first_step() + run->records().size(), .chain = run->chain()};
  std::set<uint64_t> steps;
  for (const audit::CheckpointFacts& facts : run->checkpoints()) {
    steps.insert(facts.announcement.next_step);
  }
  progress.checkpoints.assign(steps.begin(), steps.end());
  return progress;
}

absl::StatusOr<PublishAnswer> Coordinator::PublishRecords(
    const Digest& run_id, const std::vector<std::string>& envelopes) {
  Ed25519PublicKey trainer;
  {
    const absl::ReaderMutexLock lock(&mutex_);
    const RunLedger* run = ledger_.FindRun(run_id);
    if (run == nullptr) return RunUnknown(run_id);
    trainer = ledger_.keys().keys()[run->trainer_key_id()].key;
  }
  // Those up to the first that is no record of this run are taken.
  std::vector<LogEntry> entries;
  absl::Status refused;
  for (const std::string& envelope : envelopes) {
    absl::StatusOr<LogEntry> entry = ParseAs(envelope, EntryKind::kRecord);
    refused = entry.ok() ? VerifyOn(*entry, trainer) : entry.status();
    if (refused.ok() && std::get<audit::PublishedRecord>(entry->payload()).run_id != run_id) {
      refused = EnvelopeInvalid("the record is of another run");
    }
    if (!refused.ok()) break;
    entries.push_back(*std::move(entry));
  }
  return Write<PublishAnswer>(
      SourceOf(run_id), static_cast<int64_t>(entries.size()),
      [&](Work& work) -> absl::StatusOr<PublishAnswer> {
        const RunLedger& run = *ledger_.FindRun(run_id);
        PublishAnswer answer;
        const uint64_t before = run.records().size();
        absl::Status status;
        for (size_t i = 0; i < entries.size() && status.ok(); ++i) {
          status = PublishOne(work, run, entries[i], envelopes[i], &answer);
        }
        if (status.ok()) status = refused;
        answer.next_step = run.first_step() + run.records().size();
        if (run.records().size() > before) {
          Tell(work, "records",
               absl::StrCat(R"({"run":")", run_id.ToHex(), R"(","next_step":)", answer.next_step,
                            "}"));
        }
        if (status.ok()) return answer;
        const std::string reason = rpc::ReasonOf(status);
        if (reason.empty()) return status;
        work.keep = true;
        return rpc::WithReason(status, reason, {{"next_step", absl::StrCat(answer.next_step)}});
      });
}

absl::Status Coordinator::PublishOne(Work& work, const RunLedger& run, const LogEntry& entry,
                                     const std::string& envelope, PublishAnswer* answer) {
  const audit::StepRecord& record = std::get<audit::PublishedRecord>(entry.payload()).record;
  const audit::StepRecord* known = run.FindRecord(record.step);
  if (known != nullptr && *known == record) {
    answer->last = run.record_entries()[record.step - run.first_step()];
    return absl::OkStatus();
  }
  const uint64_t next = run.first_step() + run.records().size();
  if (known == nullptr && record.step != next) {
    return Refused(absl::StatusCode::kFailedPrecondition, "STEP_GAP",
                   absl::StrCat("expected step ", next, "; found step ", record.step));
  }
  const absl::StatusOr<audit::Outcome> outcome =
      Append(work, entry, envelope, &run.run_id(), &record.step, &answer->last);
  if (!outcome.ok()) {
    // The same second record once more is refused as the first time.
    if (known != nullptr && audit::RefusalOf(outcome.status()) == audit::Refusal::kDuplicate) {
      return Refused(absl::StatusCode::kFailedPrecondition, "SECOND_HISTORY",
                     outcome.status().message());
    }
    return WithWireReason(outcome.status(), EntryKind::kRecord);
  }
  const uint64_t offset = record.step - run.first_step();
  if (!outcome->second_history) return table_.AddStep(run.run_id(), offset, work.now_ms);
  LOCKSTEP_RETURN_IF_ERROR(AppendDispute(work, {.run_id = run.run_id(),
                                                .step = record.step,
                                                .reason = audit::DisputeReason::kSecondHistory,
                                                .evidence = {entry.leaf_hash()}}));
  LOCKSTEP_RETURN_IF_ERROR(table_.SetDisputed(run.run_id(), offset, true, work.now_ms));
  TellStep(work, run, *outcome);
  return Refused(absl::StatusCode::kFailedPrecondition, "SECOND_HISTORY",
                 absl::StrCat("step ", record.step,
                              " has another record; this one is kept as evidence of it"));
}

absl::StatusOr<EntryRef> Coordinator::Announce(Work& work, const LogEntry& entry,
                                               const std::string& envelope,
                                               const std::vector<ArtifactSource>& artifacts) {
  const auto& announcement = std::get<audit::CheckpointAnnouncement>(entry.payload());
  LOCKSTEP_RETURN_IF_ERROR(PutArtifacts(work, artifacts));
  const absl::StatusOr<EntryRow> known = work.view().EntryByLeafHash(entry.leaf_hash());
  if (known.ok()) return EntryRef{.log_index = known->log_index, .leaf_hash = known->leaf_hash};
  if (!absl::IsNotFound(known.status())) return known.status();
  EntryRef where;
  const absl::StatusOr<audit::Outcome> outcome =
      Append(work, entry, envelope, &announcement.run_id, &announcement.next_step, &where);
  if (!outcome.ok()) return WithWireReason(outcome.status(), EntryKind::kCheckpoint);
  waiting_.push_back(
      {.run = announcement.run_id, .step = announcement.next_step, .announcement = announcement});
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> missing,
                            MissingOf(work.view(), announcement));
  if (missing.empty()) {
    waiting_.pop_back();
    const RunLedger* run = ledger_.FindRun(announcement.run_id);
    LOCKSTEP_RETURN_IF_ERROR(
        table_.AddState(announcement.run_id, announcement.next_step - run->first_step()));
  }
  Tell(work, "checkpoint",
       absl::StrCat(R"({"run":")", announcement.run_id.ToHex(), R"(","next_step":)",
                    announcement.next_step, "}"));
  return where;
}

absl::StatusOr<EntryRef> Coordinator::AnnounceCheckpoint(
    const std::string& envelope, const std::vector<ArtifactSource>& artifacts) {
  LOCKSTEP_ASSIGN_OR_RETURN(LogEntry entry, ParseAs(envelope, EntryKind::kCheckpoint));
  const auto& announcement = std::get<audit::CheckpointAnnouncement>(entry.payload());
  Ed25519PublicKey trainer;
  {
    const absl::ReaderMutexLock lock(&mutex_);
    const RunLedger* run = ledger_.FindRun(announcement.run_id);
    if (run == nullptr) return RunUnknown(announcement.run_id);
    trainer = ledger_.keys().keys()[run->trainer_key_id()].key;
  }
  LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, trainer));
  return Write<EntryRef>(SourceOf(announcement.run_id), static_cast<int64_t>(artifacts.size()) + 1,
                         [&](Work& work) { return Announce(work, entry, envelope, artifacts); });
}

absl::StatusOr<OfferAnswer> Coordinator::OfferState(const Caller& caller,
                                                    const std::string& envelope,
                                                    const std::vector<ArtifactSource>& artifacts) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTime(caller));
  LOCKSTEP_ASSIGN_OR_RETURN(LogEntry entry, ParseAs(envelope, EntryKind::kCheckpoint));
  LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, caller.key));
  return Write<OfferAnswer>(
      SourceOf(caller.key.Id()), static_cast<int64_t>(artifacts.size()) + 2,
      [&](Work& work) -> absl::StatusOr<OfferAnswer> {
        LOCKSTEP_RETURN_IF_ERROR(RequireWorker(caller.key).status());
        LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> before, Answered(work, caller));
        if (!before) LOCKSTEP_RETURN_IF_ERROR(Remember(work, caller, "offer"));
        OfferAnswer answer;
        LOCKSTEP_ASSIGN_OR_RETURN(answer.entry, Announce(work, entry, envelope, artifacts));
        LOCKSTEP_ASSIGN_OR_RETURN(
            answer.upload,
            MissingOf(work.view(), std::get<audit::CheckpointAnnouncement>(entry.payload())));
        return answer;
      });
}

absl::Status Coordinator::PutArtifacts(Work& work, const std::vector<ArtifactSource>& artifacts) {
  for (const ArtifactSource& artifact : artifacts) {
    ArtifactRow row{.digest = artifact.digest,
                    .bytes = artifact.bytes,
                    .stored = options_.has_artifact(artifact.digest),
                    .mirrors = artifact.mirrors};
    std::sort(row.mirrors.begin(), row.mirrors.end());
    row.mirrors.erase(std::unique(row.mirrors.begin(), row.mirrors.end()), row.mirrors.end());
    const absl::Status put = work.store().PutArtifact(row);
    if (absl::IsFailedPrecondition(put)) {
      return Refused(absl::StatusCode::kInvalidArgument, "ARTIFACT_DIFFERS", put.message());
    }
    LOCKSTEP_RETURN_IF_ERROR(put);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Coordinator::IsAvailable(StoreView& view, const Digest& digest) const {
  if (options_.has_artifact(digest)) return true;
  const absl::StatusOr<ArtifactRow> row = view.Artifact(digest);
  if (absl::IsNotFound(row.status())) return false;
  if (!row.ok()) return row.status();
  return !row->mirrors.empty();
}

absl::StatusOr<std::vector<Digest>> Coordinator::MissingOf(
    StoreView& view, const audit::CheckpointAnnouncement& state) const {
  std::vector<Digest> digests = {state.manifest};
  for (const audit::CheckpointFile& file : state.files) digests.push_back(file.sha256);
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool available, IsAvailable(view, digest));
    if (!available) missing.push_back(digest);
  }
  return missing;
}

absl::StatusOr<std::vector<Digest>> Coordinator::MissingArtifacts(
    const std::vector<Digest>& digests) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, store_->Read());
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool available, IsAvailable(*view, digest));
    if (!available) missing.push_back(digest);
  }
  return missing;
}

absl::StatusOr<std::optional<audit::CheckpointAnnouncement>> Coordinator::StateAt(
    StoreView& view, const Digest& run_id, uint64_t step) const {
  const RunLedger& run = *ledger_.FindRun(run_id);
  std::optional<audit::CheckpointAnnouncement> found;
  for (const audit::CheckpointFacts& facts : run.checkpoints()) {
    if (facts.announcement.next_step != step) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> missing,
                              MissingOf(view, facts.announcement));
    if (!missing.empty()) continue;
    // The trainer's before others'.
    if (!found || facts.key_id == run.trainer_key_id()) found = facts.announcement;
  }
  return found;
}

}  // namespace lockstep::coordinator
