// SPDX-License-Identifier: Apache-2.0
//
// A small run with everything that its log may hold: keys, records, honest attestations and their
// openings, each to be changed by a test. For tests.
#ifndef LOCKSTEP_AUDIT_TESTING_SMALL_LOG_H_
#define LOCKSTEP_AUDIT_TESTING_SMALL_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "audit/evidence/log_entry.h"
#include "audit/ledger/ledger.h"
#include "audit/log/log_checkpoint.h"
#include "audit/presets.h"
#include "base/ed25519.h"
#include "base/merkle.h"
#include "base/sha256.h"

namespace lockstep::audit {

// Key number n, the same in every test.
inline const Ed25519PrivateKey& TestKey(int n) {
  static auto* const keys = new std::map<int, Ed25519PrivateKey>();
  const auto found = keys->find(n);
  if (found != keys->end()) return found->second;
  const Digest seed = Sha256(AsBytes(absl::StrCat("test key ", n)));
  return keys->emplace(n, Ed25519PrivateKey::FromSeed(seed.bytes).value()).first->second;
}
inline const Ed25519PublicKey& TestPublicKey(int n) { return TestKey(n).public_key(); }

inline constexpr int kLogKey = 1;
inline constexpr int kTrainerKey = 2;
// Operator n (from 0) has key 100 + n, revocation key 200 + n, and workers 1000 * (n + 1) + w.
inline int OperatorKey(int n) { return 100 + n; }
inline int RevocationKey(int n) { return 200 + n; }
inline int WorkerKey(int n, int w = 0) { return 1000 * (n + 1) + w; }

inline Digest TestDigest(absl::string_view what, uint64_t step) {
  return Sha256(AsBytes(absl::StrCat(what, " ", step)));
}

// The run: the golden preset, eight transcript leaves a step.
inline RunRegistration TestRegistration(Quorum quorum = {}) {
  RunRegistration registration;
  registration.manifest = Preset("golden").value();
  registration.trainer_key = TestPublicKey(kTrainerKey);
  registration.genesis = Genesis{.parameters = TestDigest("parameters", 1000),
                                 .first_moment = TestDigest("m", 1000),
                                 .second_moment = TestDigest("v", 1000),
                                 .cursor = TestDigest("cursor", 1000)};
  registration.quorum = quorum;
  return registration;
}

inline std::vector<TranscriptLeaf> TestTranscript(uint64_t step) {
  std::vector<TranscriptLeaf> leaves;
  const RunManifest manifest = Preset("golden").value();
  const uint64_t count = TranscriptLeavesOf(manifest, 0);
  const uint64_t ranks = static_cast<uint64_t>(manifest.topology.ranks());
  for (uint64_t i = 0; i < count; ++i) {
    leaves.push_back({.rank = static_cast<uint32_t>(i / (count / ranks)),
                      .micro_batch = static_cast<uint32_t>(i % (count / ranks)),
                      .losses = TestDigest("losses", step * 100 + i),
                      .z_losses = TestDigest("z_losses", step * 100 + i),
                      .residual = {TestDigest("r", step * 100 + i)},
                      .dresidual = {TestDigest("d", step * 100 + i)}});
  }
  return leaves;
}

// A record of the run that follows `previous` (null: the first).
inline StepRecord TestRecord(const RunRegistration& registration, const StepRecord* previous,
                             absl::string_view variant = "") {
  StepRecord record;
  const RunManifest& manifest = registration.manifest;
  record.step = previous == nullptr ? registration.first_step() : previous->step + 1;
  record.tokens_before = previous == nullptr ? 0 : previous->tokens_before + previous->tokens;
  record.tokens = TranscriptLeavesOf(manifest, record.tokens_before) *
                  static_cast<uint64_t>(manifest.topology.micro_batch * manifest.model.seq_len);
  record.updates = record.step + 1;
  record.parameters = TestDigest(absl::StrCat("parameters", variant), record.step);
  record.first_moment = TestDigest("m", record.step);
  record.second_moment = TestDigest("v", record.step);
  record.gradient = TestDigest("gradient", record.step);
  record.windows = TestDigest("windows", record.step);
  record.transcript = TranscriptRoot(TestTranscript(record.step));
  record.cursor = TestDigest("cursor", record.step);
  record.previous_chain = previous == nullptr ? registration.first_chain() : ChainAfter(*previous);
  return record;
}

// What an honest worker says of the published record: a match, or that it found `found`.
inline Attestation TestAttestation(const Digest& run_id, const StepRecord& published,
                                   const Ed25519PublicKey& worker,
                                   const StepRecord* found = nullptr,
                                   std::string backend = "x86-avx2") {
  const StepRecord& mine = found == nullptr ? published : *found;
  Attestation a;
  a.run_id = run_id;
  a.step = published.step;
  a.record = Sha256(AsBytes(EncodeStepRecord(published)));
  a.from_chain = mine.previous_chain;
  a.computed_chain = ChainAfter(mine);
  a.roots = RootsOf(mine);
  a.verdict = found == nullptr ? Verdict::kMatch : Verdict::kMismatch;
  a.lease_id = "lease-1";
  a.nonce = TestDigest("nonce", published.step);
  a.openings_digest = OpeningsDigest(a.nonce, worker, TestTranscript(published.step));
  a.engine = {.name = "lockstep",
              .version = "1.0",
              .build = TestDigest("build", 0),
              .numerics = kNumericsVersion};
  a.backend = {
      .backend_class = std::move(backend), .isa = "avx2", .cpu = "a processor", .threads = 4};
  a.replayed_at = absl::FromUnixSeconds(1'700'000'000);
  if (found != nullptr) {
    a.computed_record = *found;
    a.difference = {.step = published.step,
                    .field = "parameters",
                    .expected = published.parameters.ToHex(),
                    .found = found->parameters.ToHex(),
                    .place = "tensor head, chunk 0 of 1"};
  }
  return a;
}

inline std::string TestEntry(const EntryPayload& payload, const std::vector<int>& keys) {
  std::vector<const Ed25519PrivateKey*> signers;
  for (const int key : keys) signers.push_back(&TestKey(key));
  return MakeLogEntry(payload, signers).value();
}

// The answer to the challenge of an attestation's entry, for one of the leaves that are asked for.
inline Opening TestOpening(const Attestation& attestation, const std::string& entry, int worker,
                           int which = 0, int openings = 1) {
  const Digest leaf_hash = MerkleLeafHash(AsBytes(entry));
  const Ed25519Signature challenge = MakeChallenge(TestKey(kLogKey), leaf_hash);
  const std::vector<TranscriptLeaf> leaves = TestTranscript(attestation.step);
  return MakeOpening(leaf_hash, challenge, attestation.nonce, TestPublicKey(worker), leaves,
                     ChallengedIndices(challenge, leaves.size(), openings)[which])
      .value();
}

// A log, and the ledger over it.
class SmallLog {
 public:
  explicit SmallLog(Quorum quorum = {}) : registration_(TestRegistration(quorum)) {}

  // For runs of more steps than the preset has. Before AddRun.
  void MakeLong() {
    RunManifest& manifest = registration_.manifest;
    manifest.batch.resize(1);
    manifest.batch[0].until_tokens = manifest.recipe.total_tokens = 1'000'000'000'000;
  }

  // Appends; what the ledger says of it. The log holds also what the ledger refuses.
  absl::StatusOr<Outcome> Append(const std::string& entry) {
    entries_.push_back(entry);
    tree_.Append(MerkleLeafHash(AsBytes(entry)));
    return ledger_.Apply(entries_.size() - 1, entry, Signatures::kVerify);
  }
  absl::StatusOr<Outcome> Append(const EntryPayload& payload, const std::vector<int>& keys) {
    return Append(TestEntry(payload, keys));
  }

  void AddOperator(int n, int workers = 1) {
    Append(OperatorEvent{.operator_key = TestPublicKey(OperatorKey(n)),
                         .revocation_key = TestPublicKey(RevocationKey(n)),
                         .name = absl::StrCat("operator ", n),
                         .contact = ""},
           {OperatorKey(n)})
        .value();
    for (int w = 0; w < workers; ++w) {
      Append(WorkerEvent{.worker_key = TestPublicKey(WorkerKey(n, w)),
                         .operator_key = TestPublicKey(OperatorKey(n)),
                         .hardware = "a machine"},
             {OperatorKey(n), WorkerKey(n, w)})
          .value();
    }
  }
  // Registers the run and publishes its first steps.
  void AddRun(int steps) {
    Append(registration_, {kTrainerKey}).value();
    for (int i = 0; i < steps; ++i) {
      Append(PublishedRecord{.run_id = run_id(), .record = NextRecord()}, {kTrainerKey}).value();
    }
  }
  StepRecord NextRecord() const {
    return TestRecord(registration_, run().records().empty() ? nullptr : &run().records().back());
  }
  // A match by this worker, and its openings.
  void Attest(uint64_t step, int worker, const std::string& backend = "x86-avx2") {
    const Attestation a = MatchOf(step, worker, backend);
    const std::string entry = TestEntry(a, {worker});
    Append(entry).value();
    const int openings = registration_.quorum.openings;
    for (int i = 0; i < openings; ++i) {
      Append(TestOpening(a, entry, worker, i, openings), {worker}).value();
    }
  }
  Attestation MatchOf(uint64_t step, int worker, const std::string& backend = "x86-avx2") const {
    return TestAttestation(run_id(), *run().FindRecord(step), TestPublicKey(worker), nullptr,
                           backend);
  }
  Attestation MismatchOf(uint64_t step, int worker) const {
    StepRecord found = *run().FindRecord(step);
    found.parameters = TestDigest("something else", step);
    return TestAttestation(run_id(), *run().FindRecord(step), TestPublicKey(worker), &found);
  }

  Digest run_id() const { return RunIdOf(registration_.manifest); }
  const RunLedger& run() const { return *ledger_.FindRun(run_id()); }
  StepState StateOfStep(uint64_t step) const { return run().states()[step - run().first_step()]; }
  RunRegistration& registration() { return registration_; }
  const RunRegistration& registration() const { return registration_; }
  const Ledger& ledger() const { return ledger_; }
  const std::vector<std::string>& entries() const { return entries_; }
  const MerkleTree& tree() const { return tree_; }
  NoteKey log_key() const { return {.name = "example.com/log", .key = TestPublicKey(kLogKey)}; }
  std::string CheckpointAt(uint64_t size) const {
    return SignLogCheckpoint({.origin = log_key().name, .size = size, .root = *tree_.Root(size)},
                             TestKey(kLogKey));
  }
  std::string Checkpoint() const { return CheckpointAt(entries_.size()); }

 private:
  RunRegistration registration_;
  Ledger ledger_{TestPublicKey(kLogKey)};
  std::vector<std::string> entries_;
  MerkleTree tree_;
};

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_TESTING_SMALL_LOG_H_
