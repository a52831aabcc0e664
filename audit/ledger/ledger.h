// SPDX-License-Identifier: Apache-2.0
//
// What a log means: a fold over its entries, in memory, without clock, disk or network. The
// coordinator folds entries as it appends them, the verifier folds the same entries off line, with
// this class: so what a server shows and what a verifier concludes cannot drift apart. The rules
// that an entry is held to: docs/attestation.md.
#ifndef LOCKSTEP_AUDIT_LEDGER_LEDGER_H_
#define LOCKSTEP_AUDIT_LEDGER_LEDGER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/evidence/dispute.h"
#include "audit/evidence/log_entry.h"
#include "audit/evidence/quorum.h"
#include "audit/ledger/key_registry.h"
#include "audit/ledger/run_ledger.h"
#include "base/ed25519.h"
#include "base/sha256.h"

namespace lockstep::audit {

struct DisputeFacts {
  uint64_t log_index = 0;
  uint32_t run = kNoId;  // place in Ledger::runs
  uint64_t step = 0;
  DisputeReason reason = DisputeReason::kMismatch;
};

struct AttestationRef {
  uint32_t run = kNoId;          // place in Ledger::runs
  uint32_t attestation = kNoId;  // in its attestations
};

// Whose word counts, and how much of it: a run's quorum, or a verifier's own.
struct VerifierPolicy {
  Quorum quorum;
  // Operators, by any key they have had; the words of others count for nothing, neither matches nor
  // mismatches. Without a list all operators count.
  std::optional<absl::flat_hash_set<Ed25519PublicKey>> trusted_operators;
};

// What an accepted entry did.
struct Outcome {
  EntryKind kind = EntryKind::kRun;
  uint32_t run = kNoId;  // place in runs(); none for key events
  // Of a record, an attestation, an opening, a dispute; of a checkpoint or an evaluation, the step
  // that goes on.
  uint64_t step = 0;
  uint32_t attestation = kNoId;  // of an attestation or opening: its id in the run
  bool second_history = false;   // the record contradicts an earlier one: kept as evidence
  // Of the step, by the run's quorum; equal for entries about no one step.
  StepState before = StepState::kUnaudited;
  StepState after = StepState::kUnaudited;
};

// Not for several threads at once where one of them applies. About 25 bytes an attestation besides
// its hash in a table, 370 a record.
class Ledger {
 public:
  // `log_key` signs the log's checkpoints, challenges and disputes.
  explicit Ledger(const Ed25519PublicKey& log_key) : log_key_(log_key) {}

  // OK if Apply would take the entry as things stand, and otherwise its refusal (refusal.h).
  absl::Status Check(const LogEntry& entry, Signatures signatures) const;

  // Takes an entry, or refuses it and changes nothing. `index` is its place in the log: at least
  // next_index(), since entries that were refused have places too. Every refusal is the same for
  // everyone who applied the same entries before, whatever was refused in between.
  absl::StatusOr<Outcome> Apply(uint64_t index, const LogEntry& entry, Signatures signatures);
  // Parses first; an entry of no known form is refused as kMalformed.
  absl::StatusOr<Outcome> Apply(uint64_t index, absl::string_view bytes, Signatures signatures);

  // One past the index of the last entry that was taken.
  uint64_t next_index() const { return next_index_; }
  const Ed25519PublicKey& log_key() const { return log_key_; }

  // In the order of the log. References to a run stay good.
  const std::deque<RunLedger>& runs() const { return runs_; }
  const RunLedger* FindRun(const Digest& run_id) const;
  const KeyRegistry& keys() const { return keys_; }
  const std::vector<std::string>& backends() const { return backends_; }
  const std::vector<DisputeFacts>& disputes() const { return disputes_; }
  // By the leaf hash of its entry.
  std::optional<AttestationRef> FindAttestation(const Digest& leaf_hash) const;

  // What counts for a step of a run. An unknown step has nothing.
  StepTally TallyOf(const RunLedger& run, uint64_t step, const VerifierPolicy& policy) const;
  // All steps of a run, by somebody's own policy (StateOf makes a state of each).
  std::vector<StepTally> TalliesUnder(const RunLedger& run, const VerifierPolicy& policy) const;

 private:
  // What Check finds out and Apply needs.
  struct Plan {
    uint32_t run = kNoId;
    uint32_t key_id = kNoId;
    uint32_t attestation = kNoId;
    bool second_history = false;
    int opening = 0;  // which of those asked for
  };
  // What is left to wait for of an attestation.
  struct Pending {
    Digest nonce;
    Digest openings_digest;
    std::optional<Ed25519Signature> challenge;  // of its first opening
    uint32_t given = 0;                         // bits, in the order of ChallengedIndices
  };
  static uint64_t PendingKey(uint32_t run, uint32_t attestation) {
    return uint64_t{run} << 32 | attestation;
  }
  using TrustedOperators = std::vector<bool>;  // by operator id; empty: all

  absl::StatusOr<Plan> MakePlan(const LogEntry& entry, Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const RunRegistration& p, const LogEntry& e, Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const PublishedRecord& p, const LogEntry& e, Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const CheckpointAnnouncement& p, const LogEntry& e,
                               Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const KeyEvent& p, const LogEntry& e, Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const Attestation& p, const LogEntry& e, Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const Opening& p, const LogEntry& e, Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const Dispute& p, const LogEntry& e, Signatures how) const;
  absl::StatusOr<Plan> PlanFor(const Evaluation& p, const LogEntry& e, Signatures how) const;
  absl::StatusOr<Plan> PlanBadOpening(const Dispute& dispute, uint32_t run, Signatures how) const;

  void Commit(const RunRegistration& p, const Plan& plan, const EntryRef& entry, Outcome* outcome);
  void Commit(const PublishedRecord& p, const Plan& plan, const EntryRef& entry, Outcome* outcome);
  void Commit(const CheckpointAnnouncement& p, const Plan& plan, const EntryRef& entry,
              Outcome* outcome);
  void Commit(const KeyEvent& p, const Plan& plan, const EntryRef& entry, Outcome* outcome);
  void Commit(const Attestation& p, const Plan& plan, const EntryRef& entry, Outcome* outcome);
  void Commit(const Opening& p, const Plan& plan, const EntryRef& entry, Outcome* outcome);
  void Commit(const Dispute& p, const Plan& plan, const EntryRef& entry, Outcome* outcome);
  void Commit(const Evaluation& p, const Plan& plan, const EntryRef& entry, Outcome* outcome);

  absl::StatusOr<uint32_t> RequireRun(const Digest& run_id) const;
  absl::Status RequireGood(uint32_t key_id) const;
  // The single signer, registered and good.
  absl::StatusOr<uint32_t> RequireSigner(const LogEntry& entry, Signatures how) const;
  // An entry that is an opening (checked by the caller) and was asked for, before what it shows is
  // looked at: its place among those.
  absl::StatusOr<Plan> PlanAsked(const LogEntry& entry, Signatures how) const;
  absl::Status VerifyAsked(const Opening& opening, const Plan& plan) const;

  TrustedOperators TrustedOf(const VerifierPolicy& policy) const;
  StepTally Tally(const RunLedger& run, uint64_t step, const Quorum& quorum,
                  const TrustedOperators& trusted) const;
  void Recount(RunLedger& run, uint64_t step);
  uint16_t BackendId(const std::string& name);

  Ed25519PublicKey log_key_;
  uint64_t next_index_ = 0;
  KeyRegistry keys_;
  std::deque<RunLedger> runs_;
  absl::flat_hash_map<Digest, uint32_t> runs_by_id_;
  absl::flat_hash_map<Digest, AttestationRef> attestations_by_leaf_;
  absl::flat_hash_map<uint64_t, Pending> pending_;  // by PendingKey
  std::vector<std::string> backends_;
  std::vector<DisputeFacts> disputes_;
  absl::flat_hash_set<Digest> disputes_seen_;
};

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_LEDGER_H_
