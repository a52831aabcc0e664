// SPDX-License-Identifier: Apache-2.0
//
// Start, end, reading, and what all requests share on the writer's thread.

#include "coordinator/core/coordinator.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "audit/ledger/refusal.h"
#include "base/directory.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "coordinator/core/counts.h"
#include "coordinator/core/json_writer.h"
#include "coordinator/core/random_bytes.h"
#include "coordinator/core/reasons.h"
#include "coordinator/core/work.h"
#include "coordinator/store/sqlite_store.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {
namespace {

constexpr absl::string_view kCanarySeen = "CANARY_SEEN";

// A new one only where there is no log: another key cannot go on with one, and must not lie where
// the right one is to be put back.
absl::StatusOr<Ed25519PrivateKey> LoadOrCreateKey(const std::string& directory) {
  const std::string path = directory + "/log.key";
  if (access(path.c_str(), F_OK) == 0) return Ed25519PrivateKey::Load(path);
  if (access((directory + "/log").c_str(), F_OK) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is missing, and ", directory,
                                                      "/log was signed with it: put the key back"));
  }
  return Ed25519PrivateKey::Create(path);
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, Ed25519PrivateKey log_key)
    : options_(std::move(options)),
      log_private_key_(std::move(log_key)),
      ledger_(log_private_key_.public_key()) {}

Coordinator::~Coordinator() { Stop(); }

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Open(CoordinatorOptions options) {
  if (!audit::IsNoteKeyName(options.origin)) {
    return absl::InvalidArgumentError(
        absl::StrCat("origin \"", options.origin,
                     "\": expected a name without spaces and '+', such as example.com/lockstep"));
  }
  const std::string directory = options.directory;
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(directory));
  LOCKSTEP_ASSIGN_OR_RETURN(Ed25519PrivateKey key, LoadOrCreateKey(directory));
  std::unique_ptr<Coordinator> coordinator(new Coordinator(std::move(options), std::move(key)));
  Coordinator& self = *coordinator;
  // Takes the lock of the directory: nothing else is opened before.
  LOCKSTEP_ASSIGN_OR_RETURN(
      self.log_, LogWriter::Open({.directory = directory + "/log", .origin = self.options_.origin},
                                 self.log_private_key_));
  LOCKSTEP_ASSIGN_OR_RETURN(self.store_, SqliteStore::Open(directory + "/store.sqlite"));
  LOCKSTEP_RETURN_IF_ERROR(self.Rebuild());
  LOCKSTEP_ASSIGN_OR_RETURN(self.writer_,
                            GroupCommit::Start(*self.store_, *self.log_, *self.time_,
                                               {.rows_max = self.options_.batch_rows_max,
                                                .on_failure = self.options_.on_failure}));
  return coordinator;
}

absl::Status Coordinator::Rebuild() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, store_->Read());
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t base_ms, view->ServiceMs());
  time_.emplace(base_ms, *options_.clock);
  LOCKSTEP_RETURN_IF_ERROR(view->ForEachEntry(0, [&](const EntryRow& row) -> absl::Status {
    const absl::StatusOr<audit::Outcome> taken =
        ledger_.Apply(row.log_index, row.envelope, audit::Signatures::kTrust);
    if (taken.ok()) {
      tallies_.Apply(ledger_, *taken, row.received_unix_ms.value_or(kTimeUnknown));
      return absl::OkStatus();
    }
    return absl::DataLossError(
        absl::StrCat("store entry ", row.log_index,
                     " is not one that was ever taken: ", taken.status().message()));
  }));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<EvidenceCount> refused, view->CountEvidence());
  for (const EvidenceCount& count : refused) {
    AddRefused(count.key, count.reason, static_cast<uint64_t>(count.count));
    last_evidence_id_ = std::max(last_evidence_id_, count.last_id);
  }
  return RebuildTable(*view);
}

absl::Status Coordinator::RebuildTable(StoreView& view) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> doubts, view.Doubts());
  doubted_.insert(doubts.begin(), doubts.end());
  for (size_t place = 0; place < ledger_.runs().size(); ++place) {
    LOCKSTEP_RETURN_IF_ERROR(RebuildRun(view, static_cast<uint32_t>(place)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<LeaseRow> leases, view.LiveLeases());
  for (const LeaseRow& row : leases) LOCKSTEP_RETURN_IF_ERROR(RebuildLease(row));
  return absl::OkStatus();
}

absl::Status Coordinator::RebuildRun(StoreView& view, uint32_t place) {
  const audit::RunLedger& run = ledger_.runs()[place];
  LOCKSTEP_RETURN_IF_ERROR(AddRun(run));
  const int64_t now_ms = time_->NowMs();
  for (uint64_t i = 0; i < run.records().size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(table_.AddStep(run.run_id(), i, now_ms));
    if (run.states()[i] == audit::StepState::kDisputed) {
      LOCKSTEP_RETURN_IF_ERROR(table_.SetDisputed(run.run_id(), i, true, now_ms));
    }
  }
  for (const audit::AttestationFacts& facts : run.attestations()) {
    const Auditor auditor = AuditorOf(facts.key_id, ledger_.backends()[facts.backend_id]);
    if (facts.standing == audit::Standing::kMismatch) {
      LOCKSTEP_RETURN_IF_ERROR(
          table_.AddMismatch(run.run_id(), facts.step_offset, auditor, now_ms));
    } else if (Counts(ledger_, run, facts)) {
      LOCKSTEP_ASSIGN_OR_RETURN(const KeyTrust trust, view.Trust(FirstKeyOf(facts.key_id)));
      LOCKSTEP_RETURN_IF_ERROR(
          table_.AddMatch(run.run_id(), facts.step_offset, auditor,
                          NeedsReplication(trust, options_.policy.trust, Uniform())));
    }
  }
  for (const audit::CheckpointFacts& facts : run.checkpoints()) {
    IndexState(place, static_cast<uint32_t>(&facts - run.checkpoints().data()));
    if (doubted_.contains(facts.log_index)) continue;
    const uint64_t step = facts.announcement.next_step;
    const Digest source = ArtifactSourceOf(facts);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> missing,
                              MissingOf(view, facts.announcement, source));
    if (missing.empty()) {
      LOCKSTEP_RETURN_IF_ERROR(table_.AddState(run.run_id(), step - run.first_step()));
    } else {
      waiting_.push_back({.run = run.run_id(),
                          .step = step,
                          .announcement = facts.announcement,
                          .source = source});
    }
  }
  return absl::OkStatus();
}

// Which backend its holder has is not stored: until it ends, it counts for the operator alone.
absl::Status Coordinator::RebuildLease(const LeaseRow& row) {
  const audit::RunLedger* run = ledger_.FindRun(row.run);
  const uint32_t key_id = ledger_.keys().FindById(Ed25519PublicKey{row.key.bytes}.Id());
  if (run == nullptr || key_id == audit::kNoId) {
    return absl::DataLossError(absl::StrCat("lease ", row.lease_id, " of an unknown run or key"));
  }
  auto lease = std::make_unique<LiveLease>();
  lease->row = row;
  lease->lease_ms = std::max(row.expires_ms - row.heartbeat_ms, options_.policy.lease_ms_min);
  lease->auditor = AuditorOf(key_id, "");
  lease->attested = AttestedBy(*run, key_id, row.first_step, row.end_step);
  const auto left = std::count(lease->attested.begin(), lease->attested.end(), false);
  lease->contributed = static_cast<size_t>(left) < lease->attested.size();
  LOCKSTEP_RETURN_IF_ERROR(table_.AddLease({.lease_id = row.lease_id,
                                            .run = row.run,
                                            .first_step = row.first_step - run->first_step(),
                                            .end_step = row.end_step - run->first_step(),
                                            .steps_wanted = left,
                                            .auditor = lease->auditor,
                                            .address = row.address}));
  live_.emplace(row.lease_id, std::move(lease));
  return absl::OkStatus();
}

Digest Coordinator::OperatorNameOf(uint32_t key_id) const {
  const audit::KeyFacts& key = ledger_.keys().keys()[key_id];
  if (key.operator_id == audit::kNoId) return Digest{key.key.bytes};
  const uint64_t since = ledger_.keys().operators()[key.operator_id].since;
  return Sha256(AsBytes(absl::StrCat("operator of log entry ", since)));
}

Digest Coordinator::FirstKeyOf(uint32_t key_id) const {
  const auto& keys = ledger_.keys().keys();
  return Digest{keys[keys[key_id].first_id].key.bytes};
}

Digest Coordinator::TrustNameOf(const Ed25519PublicKey& key) const {
  const uint32_t key_id = ledger_.keys().Find(key);
  return key_id == audit::kNoId ? Digest{key.bytes} : FirstKeyOf(key_id);
}

Auditor Coordinator::AuditorOf(uint32_t key_id, absl::string_view backend) {
  return table_.NumberAuditor(FirstKeyOf(key_id), OperatorNameOf(key_id), backend);
}

double Coordinator::Uniform() { return options_.random ? options_.random() : RandomUniform(); }

absl::Status Coordinator::health() const {
  if (diverged_) return absl::UnavailableError("the ledger has left the store");
  return writer_->status();
}

void Coordinator::Stop() {
  if (writer_ != nullptr) writer_->Stop();
}

void Coordinator::Read(absl::FunctionRef<void(const audit::Ledger& ledger)> body) const {
  const absl::ReaderMutexLock lock(&mutex_);
  body(ledger_);
}

void Coordinator::Read(
    absl::FunctionRef<void(const audit::Ledger& ledger, const Tallies& tallies)> body) const {
  const absl::ReaderMutexLock lock(&mutex_);
  body(ledger_, tallies_);
}

std::vector<StepLease> Coordinator::LeasesOn(const Digest& run, uint64_t step) const {
  std::vector<StepLease> leases;
  const absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [id, lease] : live_) {
    const LeaseRow& row = lease->row;
    if (row.run != run || step < row.first_step || step >= row.end_step) continue;
    leases.push_back({.key_id = ledger_.keys().FindById(Ed25519PublicKey{row.key.bytes}.Id()),
                      .backend = lease->backend,
                      .granted_unix_ms = row.granted_unix_ms});
  }
  return leases;
}

absl::StatusOr<Coverage> Coordinator::CoverageOf(const Digest& run_id) const {
  Coverage coverage;
  {
    const absl::ReaderMutexLock lock(&mutex_);
    const audit::RunLedger* run = ledger_.FindRun(run_id);
    if (run == nullptr) {
      return Refused(absl::StatusCode::kNotFound, "RUN_UNKNOWN", "the run is not registered");
    }
    coverage.first_step = run->first_step();
    coverage.states.assign(run->states().begin(), run->states().end());
    for (const auto& [id, lease] : live_) {
      if (lease->row.run != run_id) continue;
      for (uint64_t step = lease->row.first_step; step < lease->row.end_step; ++step) {
        audit::StepState& state = coverage.states[step - coverage.first_step];
        if (state == audit::StepState::kUnaudited) state = audit::StepState::kClaimed;
      }
    }
  }
  for (const audit::StepState state : coverage.states) {
    ++coverage.counts[static_cast<size_t>(state)];
  }
  return coverage;
}

absl::StatusOr<std::string> Coordinator::Receipt(uint64_t log_index) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogProof proof, log_->Receipt(log_index));
  return audit::EncodeLogProof(proof);
}

size_t Coordinator::LiveLeases() const {
  const absl::ReaderMutexLock lock(&mutex_);
  return live_.size();
}

absl::StatusOr<Uploader> Coordinator::UploaderOf(const Ed25519PublicKey& key) const {
  const absl::ReaderMutexLock lock(&mutex_);
  const uint32_t id = ledger_.keys().Find(key);
  if (id == audit::kNoId || !ledger_.keys().IsGood(id)) {
    return absl::PermissionDeniedError("the key is not registered, or has ended");
  }
  const audit::KeyFacts& facts = ledger_.keys().keys()[id];
  Uploader uploader;
  uploader.trains =
      std::any_of(ledger_.runs().begin(), ledger_.runs().end(),
                  [&](const audit::RunLedger& run) { return run.trainer_key_id() == id; });
  if (!uploader.trains && facts.role != audit::KeyRole::kWorker) {
    return absl::PermissionDeniedError("expected a worker's key, or that of a run's trainer");
  }
  uploader.owner = OperatorNameOf(id);
  return uploader;
}

absl::StatusOr<audit::Outcome> Coordinator::Append(Work& work, const audit::LogEntry& entry,
                                                   const std::string& envelope, const Digest* run,
                                                   const uint64_t* step, audit::EntryRef* where) {
  LOCKSTEP_RETURN_IF_ERROR(ledger_.Check(entry, audit::Signatures::kVerify));
  EntryRow row;
  row.kind = std::string(audit::EntryKindName(entry.kind()));
  row.leaf_hash = entry.leaf_hash();
  row.envelope = envelope;
  row.received_unix_ms = time_->UnixMs();
  if (run != nullptr) row.run = *run;
  if (step != nullptr) row.step = *step;
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t log_index, work.context.AppendEntry(row));
  work.applied = true;
  *where = {.log_index = log_index, .leaf_hash = entry.leaf_hash()};
  const absl::MutexLock lock(&mutex_);
  absl::StatusOr<audit::Outcome> outcome =
      ledger_.Apply(log_index, entry, audit::Signatures::kVerify);
  if (outcome.ok()) tallies_.Apply(ledger_, *outcome, *row.received_unix_ms);
  return outcome;
}

absl::Status Coordinator::AppendDispute(Work& work, const audit::Dispute& dispute) {
  const Ed25519PrivateKey* const signer = &log_private_key_;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string envelope,
                            audit::MakeLogEntry(dispute, std::span(&signer, 1)));
  LOCKSTEP_ASSIGN_OR_RETURN(audit::LogEntry entry, audit::LogEntry::Parse(envelope));
  entry.MarkSignedBy(log_private_key_.public_key());
  audit::EntryRef where;
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::Outcome outcome,
                            Append(work, entry, envelope, &dispute.run_id, &dispute.step, &where));
  Tell(work, "dispute",
       absl::StrCat(R"({"run":")", dispute.run_id.ToHex(), R"(","step":)", dispute.step,
                    R"(,"reason":")", audit::DisputeReasonName(dispute.reason), R"(","log_index":)",
                    where.log_index, "}"));
  TellStep(work, ledger_.runs()[outcome.run], outcome);
  return absl::OkStatus();
}

absl::Status Coordinator::KeepEvidence(Work& work, absl::string_view reason, const Digest* run,
                                       const uint64_t* step, const Digest* key,
                                       const std::string& envelope) {
  EvidenceRow row;
  row.reason = std::string(reason);
  row.envelope = envelope;
  if (run != nullptr) row.run = *run;
  if (step != nullptr) row.step = *step;
  if (key != nullptr) row.key = *key;
  row.received_unix_ms = time_->UnixMs();
  work.keep = true;
  if (key != nullptr) {
    // The first ones: who has more to say cannot push out what is there.
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t kept, work.view().CountEvidence(*key, reason));
    if (kept >= options_.evidence_per_key_max) return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t id, work.store().AddEvidence(row));
  const bool is_new = id > last_evidence_id_;
  last_evidence_id_ = std::max(last_evidence_id_, id);
  if (is_new && key != nullptr) {
    const absl::MutexLock lock(&mutex_);
    AddRefused(*key, reason, 1);
  }
  return absl::OkStatus();
}

void Coordinator::AddRefused(const Digest& key, absl::string_view reason, uint64_t count) {
  const uint32_t key_id = ledger_.keys().FindById(Ed25519PublicKey{key.bytes}.Id());
  // Who sees through a canary has done nothing wrong; strangers' keys are nobody's.
  if (key_id != audit::kNoId && reason != kCanarySeen) {
    tallies_.AddRefused(key_id, reason, count);
  }
}

void Coordinator::Tell(Work& work, absl::string_view kind, std::string json) {
  work.context.OnCommitted(
      [this, kind = std::string(kind), json = std::move(json)] { options_.on_event(kind, json); });
}

void Coordinator::TellStep(Work& work, const audit::RunLedger& run, const audit::Outcome& outcome) {
  if (outcome.before == outcome.after) return;
  Tell(work, "step",
       absl::StrCat(R"({"run":")", run.run_id().ToHex(), R"(","step":)", outcome.step,
                    R"(,"state":")", audit::StepStateName(outcome.after), "\"}"));
}

void Coordinator::TellLease(Work& work, const LeaseRow& lease, bool claimed) {
  Tell(work, "lease",
       absl::StrCat(R"({"run":")", lease.run.ToHex(), R"(","begin":)", lease.first_step,
                    R"(,"end":)", lease.end_step, R"(,"claimed":)", claimed ? "true" : "false",
                    "}"));
}

void Coordinator::TellAttestation(Work& work, const audit::RunLedger& run, uint32_t attestation) {
  const audit::AttestationFacts& facts = run.attestations()[attestation];
  const audit::KeyRegistry& keys = ledger_.keys();
  const audit::OperatorFacts& who = keys.operators()[keys.keys()[facts.key_id].operator_id];
  JsonWriter json;
  json.BeginObject();
  json.Field("run", run.run_id());
  json.Field("step", run.first_step() + facts.step_offset);
  json.Field("log_index", facts.log_index);
  json.Field("operator", who.name);
  json.Field("operator_key", Digest{keys.keys()[who.key_id].key.bytes});
  json.Field("backend", ledger_.backends()[facts.backend_id]);
  json.Field("verdict", facts.standing == audit::Standing::kMismatch ? "mismatch" : "match");
  json.EndObject();
  Tell(work, "attestation", json.Take());
}

absl::Status Coordinator::CheckTime(const Caller& caller) const {
  const int64_t now_ms = time_->UnixMs();
  // By differences that cannot overflow, whatever the caller says.
  const bool near = caller.time_unix_ms >= now_ms - options_.clock_skew_ms_max &&
                    caller.time_unix_ms <= now_ms + options_.clock_skew_ms_max;
  if (near) return absl::OkStatus();
  return rpc::WithReason(
      absl::FailedPreconditionError("time_ms is too far from the coordinator's time"), "CLOCK_SKEW",
      {{"server_time_ms", absl::StrCat(now_ms)}});
}

absl::StatusOr<std::optional<std::string>> Coordinator::Answered(Work& work, const Caller& caller) {
  absl::StatusOr<RequestRow> row = work.view().Request(Digest{caller.key.bytes}, caller.request_id);
  if (absl::IsNotFound(row.status())) return std::nullopt;
  if (!row.ok()) return row.status();
  if (row->fingerprint == caller.fingerprint) return std::move(row->response);
  return Refused(absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
                 "another request of this key had this request_id");
}

absl::Status Coordinator::Remember(Work& work, const Caller& caller, std::string response) {
  return work.store().PutRequest({.key = Digest{caller.key.bytes},
                                  .request_id = caller.request_id,
                                  .fingerprint = caller.fingerprint,
                                  .response = std::move(response),
                                  .answered_ms = work.now_ms});
}

absl::StatusOr<uint32_t> Coordinator::RequireWorker(const Ed25519PublicKey& key) const {
  const uint32_t id = ledger_.keys().Find(key);
  if (id == audit::kNoId) {
    return Refused(absl::StatusCode::kPermissionDenied, "KEY_UNKNOWN",
                   "nobody registered this key");
  }
  if (!ledger_.keys().IsGood(id)) {
    return Refused(absl::StatusCode::kPermissionDenied, "KEY_REVOKED",
                   "this key, or its operator, was revoked or replaced");
  }
  if (ledger_.keys().keys()[id].role != audit::KeyRole::kWorker) {
    return Refused(absl::StatusCode::kPermissionDenied, "WRONG_ROLE", "expected a worker's key");
  }
  return id;
}

absl::Status Coordinator::Tick() {
  return Write<bool>(
             0, 1,
             [&](Work& work) -> absl::StatusOr<bool> {
               LOCKSTEP_RETURN_IF_ERROR(ExpireLeases(work));
               LOCKSTEP_RETURN_IF_ERROR(ExpireChallenges(work));
               absl::erase_if(
                   no_work_, [&](const auto& told) { return told.second.until_ms <= work.now_ms; });
               LOCKSTEP_RETURN_IF_ERROR(
                   work.store().DropRequests(work.now_ms - options_.request_ms));
               LOCKSTEP_RETURN_IF_ERROR(work.store().DropEvidence(options_.evidence_max));
               LOCKSTEP_RETURN_IF_ERROR(work.store().DropEnded(work.now_ms - options_.ended_ms));
               LOCKSTEP_RETURN_IF_ERROR(TakeUpStates(work));
               return true;
             })
      .status();
}

absl::Status Coordinator::TakeUpStates(Work& work) {
  // A few at a time, in turns: there may be many that nobody will ever upload.
  constexpr size_t kAtOnce = 64;
  for (size_t n = std::min(waiting_.size(), kAtOnce); n > 0; --n) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<Digest> missing,
        MissingOf(work.view(), waiting_.front().announcement, waiting_.front().source));
    WaitingState state = std::move(waiting_.front());
    waiting_.pop_front();
    if (missing.empty()) {
      const audit::RunLedger* run = ledger_.FindRun(state.run);
      LOCKSTEP_RETURN_IF_ERROR(table_.AddState(state.run, state.step - run->first_step()));
    } else {
      waiting_.push_back(std::move(state));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::coordinator
