// SPDX-License-Identifier: Apache-2.0
//
// Runs, records, states and artifacts.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "audit/ledger/refusal.h"
#include "base/merkle.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/core/mirror.h"
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

void AddMirrors(const std::vector<std::string>& from, std::vector<std::string>* mirrors) {
  for (const std::string& mirror : from) {
    const bool is_new = std::find(mirrors->begin(), mirrors->end(), mirror) == mirrors->end();
    if (is_new && mirrors->size() < kMirrorsMax) mirrors->push_back(mirror);
  }
}

// A file that a worker names with the state it offers: one of the state's, with its size, at places
// that others may be sent to.
absl::Status CheckOfferedFile(const audit::CheckpointAnnouncement& state,
                              const ArtifactSource& artifact) {
  const auto file = std::find_if(
      state.files.begin(), state.files.end(),
      [&](const audit::CheckpointFile& named) { return named.sha256 == artifact.digest; });
  const bool is_manifest = artifact.digest == state.manifest && artifact.bytes > 0 &&
                           artifact.bytes <= int64_t{audit::kCheckpointManifestBytesMax};
  if (!is_manifest && (file == state.files.end() || file->bytes != artifact.bytes)) {
    return Refused(absl::StatusCode::kInvalidArgument, "ARTIFACT_DIFFERS",
                   absl::StrCat("artifact ", artifact.digest.ToHex(), " of ", artifact.bytes,
                                " bytes is no file of the state that is offered"));
  }
  for (const std::string& mirror : artifact.mirrors) {
    if (IsPublicMirror(mirror)) continue;
    return Refused(absl::StatusCode::kInvalidArgument, "MIRROR_REFUSED",
                   "expected mirrors of public addresses, without a query");
  }
  return absl::OkStatus();
}

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
        LOCKSTEP_RETURN_IF_ERROR(PutArtifacts(work, run_id, /*by_trainer=*/true, artifacts));
        return known->entry();
      }
      return Refused(absl::StatusCode::kAlreadyExists, "RUN_EXISTS_DIFFERENTLY",
                     "this manifest is registered with another key, start or quorum");
    }
    if (ledger_.runs().size() >= options_.runs_max) {
      return Refused(absl::StatusCode::kResourceExhausted, "QUOTA_EXCEEDED",
                     "the coordinator takes no more runs");
    }
    LOCKSTEP_RETURN_IF_ERROR(PutArtifacts(work, run_id, /*by_trainer=*/true, artifacts));
    EntryRef where;
    absl::StatusOr<audit::Outcome> outcome =
        Append(work, entry, envelope, &run_id, nullptr, &where);
    if (!outcome.ok()) return WithWireReason(outcome.status(), EntryKind::kRun);
    LOCKSTEP_RETURN_IF_ERROR(AddRun(ledger_.runs()[outcome->run]));
    Tell(work, "run",
         absl::StrCat(R"({"run":")", run_id.ToHex(), R"(","log_index":)", where.log_index, "}"));
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
    // What others offer is no reason for the trainer to keep its own back.
    if (facts.key_id == run->trainer_key_id()) steps.insert(facts.announcement.next_step);
  }
  progress.checkpoints.assign(steps.begin(), steps.end());
  return progress;
}

absl::StatusOr<PublishAnswer> Coordinator::PublishRecords(
    const Digest& run_id, const std::vector<std::string>& envelopes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PublicKey trainer, TrainerKeyOf(run_id));
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
               absl::StrCat(R"({"run":")", run_id.ToHex(), R"(","first_step":)",
                            run.first_step() + before, R"(,"end_step":)", answer.next_step,
                            R"(,"next_step":)", answer.next_step, "}"));
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
                                               const std::vector<ArtifactSource>& artifacts,
                                               const Ed25519PublicKey* worker) {
  const auto& announcement = std::get<audit::CheckpointAnnouncement>(entry.payload());
  const Digest source = worker == nullptr ? announcement.run_id : Digest{worker->bytes};
  const absl::StatusOr<EntryRow> known = work.view().EntryByLeafHash(entry.leaf_hash());
  if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
  // What a worker says of its state it says once; a trainer may have found more mirrors.
  if (!known.ok() || worker == nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(PutArtifacts(work, source, worker == nullptr, artifacts));
  }
  if (known.ok()) return EntryRef{.log_index = known->log_index, .leaf_hash = known->leaf_hash};
  EntryRef where;
  const absl::StatusOr<audit::Outcome> outcome =
      Append(work, entry, envelope, &announcement.run_id, &announcement.next_step, &where);
  if (!outcome.ok()) return WithWireReason(outcome.status(), EntryKind::kCheckpoint);
  {
    const absl::MutexLock lock(&mutex_);
    const size_t states = ledger_.runs()[outcome->run].checkpoints().size();
    IndexState(outcome->run, static_cast<uint32_t>(states - 1));
  }
  waiting_.push_back({.run = announcement.run_id,
                      .step = announcement.next_step,
                      .announcement = announcement,
                      .source = source});
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> missing,
                            MissingOf(work.view(), announcement, source));
  if (missing.empty()) {
    waiting_.pop_back();
    const RunLedger* run = ledger_.FindRun(announcement.run_id);
    LOCKSTEP_RETURN_IF_ERROR(
        table_.AddState(announcement.run_id, announcement.next_step - run->first_step()));
  }
  Tell(work, "checkpoint",
       absl::StrCat(R"({"run":")", announcement.run_id.ToHex(), R"(","next_step":)",
                    announcement.next_step, R"(,"log_index":)", where.log_index, "}"));
  return where;
}

absl::StatusOr<EntryRef> Coordinator::AnnounceCheckpoint(
    const std::string& envelope, const std::vector<ArtifactSource>& artifacts) {
  LOCKSTEP_ASSIGN_OR_RETURN(LogEntry entry, ParseAs(envelope, EntryKind::kCheckpoint));
  const auto& announcement = std::get<audit::CheckpointAnnouncement>(entry.payload());
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PublicKey trainer, TrainerKeyOf(announcement.run_id));
  LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, trainer));
  return Write<EntryRef>(
      SourceOf(announcement.run_id), static_cast<int64_t>(artifacts.size()) + 1,
      [&](Work& work) { return Announce(work, entry, envelope, artifacts, /*worker=*/nullptr); });
}

// Of a state that a worker offers.
absl::Status Coordinator::CheckOffer(const audit::CheckpointAnnouncement& offered, uint32_t key_id,
                                     const std::vector<ArtifactSource>& artifacts) const {
  const RunLedger* const run = ledger_.FindRun(offered.run_id);
  if (run == nullptr) return RunUnknown(offered.run_id);
  // Who has not computed the step before it cannot have the state. That before the first one is
  // the trainer's, or follows from the manifest.
  if (offered.next_step <= run->first_step() ||
      !AttestedBy(*run, key_id, offered.next_step - 1, offered.next_step).front()) {
    return Refused(absl::StatusCode::kFailedPrecondition, "STATE_NOT_ATTESTED",
                   absl::StrCat("a state before step ", offered.next_step,
                                " is offered by keys that have attested the step before it"));
  }
  for (const ArtifactSource& artifact : artifacts) {
    LOCKSTEP_RETURN_IF_ERROR(CheckOfferedFile(offered, artifact));
  }
  return absl::OkStatus();
}

absl::StatusOr<Ed25519PublicKey> Coordinator::TrainerKeyOf(const Digest& run_id) const {
  const absl::ReaderMutexLock lock(&mutex_);
  const RunLedger* run = ledger_.FindRun(run_id);
  if (run == nullptr) return RunUnknown(run_id);
  return ledger_.keys().keys()[run->trainer_key_id()].key;
}

absl::StatusOr<EntryRef> Coordinator::AddEvaluation(Work& work, const LogEntry& entry,
                                                    const std::string& envelope) {
  const auto& evaluation = std::get<audit::Evaluation>(entry.payload());
  const absl::StatusOr<EntryRow> known = work.view().EntryByLeafHash(entry.leaf_hash());
  if (known.ok()) return EntryRef{.log_index = known->log_index, .leaf_hash = known->leaf_hash};
  if (!absl::IsNotFound(known.status())) return known.status();
  EntryRef where;
  const absl::Status taken =
      Append(work, entry, envelope, &evaluation.run_id, &evaluation.next_step, &where).status();
  if (!taken.ok()) return WithWireReason(taken, EntryKind::kEvaluation);
  Tell(work, "evaluation",
       absl::StrCat(R"({"run":")", evaluation.run_id.ToHex(), R"(","step":)", evaluation.next_step,
                    R"(,"log_index":)", where.log_index, "}"));
  return where;
}

absl::StatusOr<EntryRef> Coordinator::PublishEvaluation(const std::string& envelope) {
  LOCKSTEP_ASSIGN_OR_RETURN(LogEntry entry, ParseAs(envelope, EntryKind::kEvaluation));
  const Digest run_id = std::get<audit::Evaluation>(entry.payload()).run_id;
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PublicKey trainer, TrainerKeyOf(run_id));
  LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, trainer));
  return Write<EntryRef>(SourceOf(run_id), 1,
                         [&](Work& work) { return AddEvaluation(work, entry, envelope); });
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
        LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t key_id, RequireWorker(caller.key));
        LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> before, Answered(work, caller));
        const auto& offered = std::get<audit::CheckpointAnnouncement>(entry.payload());
        LOCKSTEP_RETURN_IF_ERROR(CheckOffer(offered, key_id, artifacts));
        if (!before) LOCKSTEP_RETURN_IF_ERROR(Remember(work, caller, "offer"));
        OfferAnswer answer;
        LOCKSTEP_ASSIGN_OR_RETURN(answer.entry,
                                  Announce(work, entry, envelope, artifacts, &caller.key));
        LOCKSTEP_ASSIGN_OR_RETURN(answer.upload,
                                  MissingOf(work.view(), offered, Digest{caller.key.bytes}));
        return answer;
      });
}

// New mirrors before those that the source named earlier; as many as are served.
absl::Status Coordinator::PutArtifacts(Work& work, const Digest& source, bool by_trainer,
                                       const std::vector<ArtifactSource>& artifacts) {
  for (const ArtifactSource& artifact : artifacts) {
    ArtifactRow row{.digest = artifact.digest,
                    .source = source,
                    .by_trainer = by_trainer,
                    .bytes = artifact.bytes};
    AddMirrors(artifact.mirrors, &row.mirrors);
    const absl::StatusOr<ArtifactRow> said = work.view().Artifact(artifact.digest, source);
    if (!said.ok() && !absl::IsNotFound(said.status())) return said.status();
    if (said.ok() && by_trainer && said->bytes != artifact.bytes) {
      return Refused(absl::StatusCode::kInvalidArgument, "ARTIFACT_DIFFERS",
                     absl::StrCat("artifact ", artifact.digest.ToHex(), " had ", said->bytes,
                                  " bytes by what its trainer said before; now ", artifact.bytes));
    }
    if (said.ok()) AddMirrors(said->mirrors, &row.mirrors);
    LOCKSTEP_RETURN_IF_ERROR(work.store().PutArtifact(row));
  }
  return absl::OkStatus();
}

Digest Coordinator::ArtifactSourceOf(const audit::CheckpointFacts& state) const {
  const RunLedger& run = *ledger_.FindRun(state.announcement.run_id);
  if (state.key_id == run.trainer_key_id()) return run.run_id();
  return Digest{ledger_.keys().keys()[state.key_id].key.bytes};
}

absl::StatusOr<bool> Coordinator::IsAvailable(StoreView& view, const Digest& digest,
                                              const Digest* source) const {
  if (options_.has_artifact(digest) && (source == nullptr || !given_up_.contains(digest))) {
    if (source == nullptr) RelyOn(digest);
    return true;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ArtifactRow> rows, view.ArtifactByTrainers(digest));
  for (const ArtifactRow& row : rows) {
    if (!row.mirrors.empty()) return true;
  }
  if (source == nullptr) return false;
  const absl::StatusOr<ArtifactRow> row = view.Artifact(digest, *source);
  if (absl::IsNotFound(row.status())) return false;
  if (!row.ok()) return row.status();
  return !row->mirrors.empty();
}

// A trainer that is told "here" does not bring it.
void Coordinator::RelyOn(const Digest& digest) const {
  const absl::MutexLock lock(&mutex_);
  if (!StatesWith(digest).empty()) relied_on_.insert(digest);
}

absl::StatusOr<std::vector<Digest>> Coordinator::MissingOf(
    StoreView& view, const audit::CheckpointAnnouncement& state, const Digest& source) const {
  std::vector<Digest> digests = {state.manifest};
  for (const audit::CheckpointFile& file : state.files) digests.push_back(file.sha256);
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool available, IsAvailable(view, digest, &source));
    if (!available) missing.push_back(digest);
  }
  return missing;
}

absl::StatusOr<std::vector<Digest>> Coordinator::MissingArtifacts(
    const std::vector<Digest>& digests) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, store_->Read());
  std::vector<Digest> missing;
  for (const Digest& digest : digests) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool available, IsAvailable(*view, digest, nullptr));
    if (!available) missing.push_back(digest);
  }
  return missing;
}

absl::StatusOr<const audit::CheckpointFacts*> Coordinator::StateAt(StoreView& view,
                                                                   const Digest& run_id,
                                                                   uint64_t step) const {
  const RunLedger& run = *ledger_.FindRun(run_id);
  const audit::CheckpointFacts* found = nullptr;
  // Where the run begins without a parent, everybody can make the state; only the trainer's own is
  // taken in its place.
  const bool computable =
      step == run.first_step() && !run.registration().manifest.parent.has_value();
  for (const audit::CheckpointFacts& facts : run.checkpoints()) {
    if (facts.announcement.next_step != step || doubted_.contains(facts.log_index)) continue;
    if (computable && facts.key_id != run.trainer_key_id()) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> missing,
                              MissingOf(view, facts.announcement, ArtifactSourceOf(facts)));
    if (!missing.empty()) continue;
    // The trainer's before others'.
    if (found == nullptr || facts.key_id == run.trainer_key_id()) found = &facts;
  }
  return found;
}

// A worker's state may be anything: whoever was sent to it and came to no verdict may be right.
// Then nobody is sent there again, and it is no fault of his. A trainer's state is the trainer's
// word.
absl::StatusOr<bool> Coordinator::DoubtState(Work& work, const LeaseRow& row) {
  const RunLedger& run = *ledger_.FindRun(row.run);
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointFacts* const start,
                            StateAt(work.view(), row.run, row.first_step));
  if (start == nullptr || start->key_id == run.trainer_key_id()) return false;
  work.changed = true;
  {
    const absl::MutexLock lock(&mutex_);
    doubted_.insert(start->log_index);
  }
  LOCKSTEP_RETURN_IF_ERROR(work.store().PutDoubt(start->log_index));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointFacts* const other,
                            StateAt(work.view(), row.run, row.first_step));
  if (other == nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(table_.DropState(row.run, row.first_step - run.first_step()));
  }
  return true;
}

}  // namespace lockstep::coordinator
