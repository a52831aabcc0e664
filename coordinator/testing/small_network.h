// SPDX-License-Identifier: Apache-2.0
//
// A coordinator in a directory of a test's own, in time that the test moves, with a trainer and
// auditors who are honest until the test changes what they say. For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_SMALL_NETWORK_H_
#define LOCKSTEP_COORDINATOR_TESTING_SMALL_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "audit/testing/small_log.h"
#include "base/testing/fake_clock.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/testing/scratch.h"

namespace lockstep::coordinator {

class SmallNetwork {
 public:
  explicit SmallNetwork(audit::Quorum quorum = {})
      : registration_(Registration(quorum)), quorum_(quorum) {
    // A test that wants canaries asks for them.
    options.policy.trust.canary_share_new = 0;
    options.policy.trust.canary_share_min = 0;
    options.origin = "test.example/log";
    options.directory = scratch_.Path("data");
    options.clock = &clock;
    options.random = [this] { return std::uniform_real_distribution<>()(random_); };
    options.has_artifact = [this](const Digest&) { return has_artifacts; };
  }

  // With what is in the directory.
  absl::Status Open() {
    coordinator_.reset();
    absl::StatusOr<std::unique_ptr<Coordinator>> opened = Coordinator::Open(options);
    if (!opened.ok()) return opened.status();
    coordinator_ = *std::move(opened);
    return absl::OkStatus();
  }
  Coordinator& operator*() { return *coordinator_; }
  Coordinator* operator->() { return coordinator_.get(); }
  void Close() { coordinator_.reset(); }

  absl::StatusOr<audit::EntryRef> AddKey(const audit::KeyEvent& event,
                                         const std::vector<int>& keys) {
    return coordinator_->SubmitKeyEvent(audit::TestEntry(event, keys));
  }
  void AddOperator(int n, int workers = 1) {
    AddKey(audit::OperatorEvent{.operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                                .revocation_key = audit::TestPublicKey(audit::RevocationKey(n)),
                                .name = absl::StrCat("operator ", n),
                                .contact = ""},
           {audit::OperatorKey(n)})
        .value();
    for (int w = 0; w < workers; ++w) {
      AddKey(audit::WorkerEvent{.worker_key = audit::TestPublicKey(audit::WorkerKey(n, w)),
                                .operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                                .hardware = "a machine"},
             {audit::OperatorKey(n), audit::WorkerKey(n, w)})
          .value();
    }
  }

  // From here on everything is about run `n` of the trainer: of the same form as run 0, with other
  // values. It has to be added as that.
  void UseRun(int n) {
    records_of_[run_] = std::exchange(records_, std::move(records_of_[n]));
    run_ = n;
    registration_ = Registration(quorum_);
    registration_.manifest.seed += static_cast<uint64_t>(n);
  }

  std::string RunEntry() const { return audit::TestEntry(registration_, {audit::kTrainerKey}); }
  // Those after `steps_before`.
  std::vector<std::string> RecordEntries(int steps_before, int steps) {
    std::vector<std::string> entries;
    for (int step = steps_before; step < steps_before + steps; ++step) {
      entries.push_back(
          audit::TestEntry(audit::PublishedRecord{.run_id = run_id(), .record = Record(step)},
                           {audit::kTrainerKey}));
    }
    return entries;
  }
  void AddRun(int steps) {
    coordinator_->RegisterRun(RunEntry(), {}).value();
    for (int step = 0; step < steps; step += 256) {
      coordinator_->PublishRecords(run_id(), RecordEntries(step, std::min(256, steps - step)))
          .value();
    }
  }
  const audit::StepRecord& Record(uint64_t step) {
    while (records_.size() <= step) {
      records_.push_back(audit::TestRecord(registration_,
                                           records_.empty() ? nullptr : &records_.back(),
                                           run_ == 0 ? "" : absl::StrCat(" of run ", run_)));
      if (on_record) on_record(records_.back());
    }
    return records_[step];
  }

  // What the trainer announces of the state before a step.
  audit::CheckpointAnnouncement StateBefore(uint64_t step) {
    audit::CheckpointAnnouncement state{.run_id = run_id(),
                                        .next_step = step,
                                        .chain = Record(step).previous_chain,
                                        .manifest = audit::TestDigest("checkpoint.json", step),
                                        .files = {}};
    for (const char* const name : audit::kCheckpointFiles) {
      state.files.push_back({.name = name, .bytes = 100, .sha256 = audit::TestDigest(name, step)});
    }
    return state;
  }

  static std::string AttemptOf(int key, absl::string_view attempt) {
    return audit::TestDigest(attempt, key).ToHex().substr(0, 32);
  }
  // A request of a key, by its first attempt, now.
  Caller CallerOf(int key, absl::string_view attempt = "attempt 1") {
    const std::string id = audit::TestDigest("request", ++requests_).ToHex().substr(0, 32);
    return {.key = audit::TestPublicKey(key),
            .address = absl::StrCat("10.0.0.", key % 250),
            .request_id = id,
            .attempt_id = AttemptOf(key, attempt),
            .time_unix_ms = absl::ToUnixMillis(clock.Now()),
            .fingerprint = audit::TestDigest("fingerprint", requests_)};
  }
  static Capabilities Machine(std::string backend = "x86-avx2") {
    return {.backend_class = std::move(backend),
            .memory_bytes = int64_t{1} << 40,
            .disk_bytes = int64_t{1} << 40,
            .tokens_per_second = 1e9,
            .runs = {}};
  }
  // The lease that the key is given.
  LeaseGrant Lease(int key, int64_t steps_max = 0, const std::string& backend = "x86-avx2") {
    return coordinator_->AcquireLease(CallerOf(key), Machine(backend), steps_max)
        .value()
        .lease.value();
  }

  // What an honest worker finds, with `found` in the place of the published record if it is given.
  audit::Attestation Found(const LeaseRow& lease, uint64_t step, int key,
                           const audit::StepRecord* found = nullptr,
                           const std::string& backend = "x86-avx2") {
    audit::Attestation a =
        audit::TestAttestation(run_id(), Record(step), audit::TestPublicKey(key), found, backend);
    a.lease_id = lease.lease_id;
    a.nonce = lease.nonce;
    a.openings_digest =
        audit::OpeningsDigest(a.nonce, audit::TestPublicKey(key), audit::TestTranscript(step));
    return a;
  }
  absl::StatusOr<AttestationAnswer> Attest(const audit::Attestation& said, int key,
                                           absl::string_view attempt = "attempt 1") {
    return coordinator_->SubmitAttestation(audit::TestPublicKey(key), AttemptOf(key, attempt),
                                           audit::TestEntry(said, {key}));
  }
  // The openings that the challenge asks for, honest.
  std::vector<audit::Opening> Openings(const audit::Attestation& said,
                                       const AttestationAnswer& answer, int key) const {
    std::vector<audit::Opening> openings;
    const std::vector<audit::TranscriptLeaf> leaves = audit::TestTranscript(said.step);
    for (const uint64_t index : audit::ChallengedIndices(*answer.challenge, leaves.size(),
                                                         registration_.quorum.openings)) {
      openings.push_back(audit::MakeOpening(answer.entry->leaf_hash, *answer.challenge, said.nonce,
                                            audit::TestPublicKey(key), leaves, index)
                             .value());
    }
    return openings;
  }
  absl::StatusOr<audit::EntryRef> Open(const std::vector<audit::Opening>& openings, int key) {
    std::vector<std::string> envelopes;
    for (const audit::Opening& opening : openings) {
      envelopes.push_back(audit::TestEntry(opening, {key}));
    }
    return coordinator_->SubmitOpenings(CallerOf(key), envelopes);
  }
  // A match, opened.
  void Match(const LeaseRow& lease, uint64_t step, int key,
             const std::string& backend = "x86-avx2") {
    const audit::Attestation said = Found(lease, step, key, nullptr, backend);
    const AttestationAnswer answer = Attest(said, key).value();
    if (answer.challenge) Open(Openings(said, answer, key), key).value();
  }

  audit::StepState StateOf(uint64_t step) {
    return coordinator_->CoverageOf(run_id()).value().states[step];
  }
  std::vector<EvidenceRow> Evidence() {
    return coordinator_->ReadStore().value()->Evidence(0, 1000).value();
  }
  KeyTrust Trust(int key) {
    return coordinator_->ReadStore()
        .value()
        ->Trust(Digest{audit::TestPublicKey(key).bytes})
        .value();
  }
  // Entries of a kind in the log.
  int CountEntries(const std::string& kind) {
    int count = 0;
    coordinator_->ReadStore()
        .value()
        ->ForEachEntry(0,
                       [&](const EntryRow& row) {
                         count += row.kind == kind ? 1 : 0;
                         return absl::OkStatus();
                       })
        .IgnoreError();
    return count;
  }

  Digest run_id() const { return audit::RunIdOf(registration_.manifest); }
  const audit::RunRegistration& registration() const { return registration_; }
  const Scratch& scratch() const { return scratch_; }

  FakeClock clock;
  CoordinatorOptions options;  // for the next Open
  bool has_artifacts = false;
  // What the trainer's records have besides, before they are signed.
  std::function<void(audit::StepRecord& record)> on_record;

 private:
  // The test run, with steps without end.
  static audit::RunRegistration Registration(audit::Quorum quorum) {
    audit::RunRegistration registration = audit::TestRegistration(quorum);
    audit::RunManifest& manifest = registration.manifest;
    manifest.batch.resize(1);
    manifest.batch[0].until_tokens = manifest.recipe.total_tokens = 1'000'000'000'000;
    return registration;
  }

  Scratch scratch_;
  std::mt19937_64 random_{1};
  audit::RunRegistration registration_;
  audit::Quorum quorum_;
  int run_ = 0;
  std::vector<audit::StepRecord> records_;
  std::map<int, std::vector<audit::StepRecord>> records_of_;  // of the runs not in use
  uint64_t requests_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_SMALL_NETWORK_H_
