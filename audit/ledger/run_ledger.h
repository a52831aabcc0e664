// SPDX-License-Identifier: Apache-2.0
//
// What the log says of one run: records, attestations, checkpoints, step states. A part of the
// ledger, which alone changes it; others read. Small structures, since a run has as many as it has
// steps, and several times that.
#ifndef LOCKSTEP_AUDIT_LEDGER_RUN_LEDGER_H_
#define LOCKSTEP_AUDIT_LEDGER_RUN_LEDGER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "audit/evidence/attestation.h"
#include "audit/evidence/checkpoint_announcement.h"
#include "audit/evidence/quorum.h"
#include "audit/evidence/run_registration.h"
#include "audit/ledger/key_registry.h"
#include "audit/step_record.h"
#include "audit/verdict.h"
#include "base/sha256.h"

namespace lockstep::audit {

enum class Standing : uint8_t {
  kMatch,     // counts once its openings are given
  kMismatch,  // disputes the step
  kVoid       // a match whose opening was wrong
};

struct AttestationFacts {
  uint64_t log_index = 0;
  uint32_t key_id = kNoId;    // KeyRegistry
  uint32_t step_offset = 0;   // from the run's first step
  uint32_t previous = kNoId;  // the one before it of the same step
  uint16_t backend_id = 0;    // Ledger::backends
  Standing standing = Standing::kMatch;
  uint8_t openings = 0;  // given
};

// An entry of the log.
struct EntryRef {
  uint64_t log_index = 0;
  Digest leaf_hash;
};

// A trainer's second record for a step: evidence, and never believed.
struct SecondRecord {
  EntryRef entry;
  StepRecord record;
};

// What a worker found instead of the published record.
struct MismatchFacts {
  StepRecord computed;
  Difference difference;  // strings of a stranger
};

struct CheckpointFacts {
  CheckpointAnnouncement announcement;
  uint32_t key_id = kNoId;
  uint64_t log_index = 0;
};

struct EvaluationFacts {
  Evaluation evaluation;
  uint64_t log_index = 0;
};

class RunLedger {
 public:
  const Digest& run_id() const { return run_id_; }
  const RunRegistration& registration() const { return registration_; }
  const EntryRef& entry() const { return entry_; }
  // KeyRegistry's id of the key that signs its records now.
  uint32_t trainer_key_id() const { return trainer_key_id_; }

  // Records of steps first_step(), first_step() + 1, ... and where each stands in the log.
  uint64_t first_step() const { return first_step_; }
  const std::vector<StepRecord>& records() const { return records_; }
  const std::vector<EntryRef>& record_entries() const { return record_entries_; }
  // The record of a step; null if there is none.
  const StepRecord* FindRecord(uint64_t step) const;
  // The chain before a step, for steps up to the one after the last record.
  std::optional<Digest> ChainBefore(uint64_t step) const;
  // The chain after the last record, or before the first.
  const Digest& chain() const { return chain_; }
  // The second record of a step; null if there is none.
  const SecondRecord* FindSecondRecord(uint64_t step) const;
  const absl::flat_hash_map<uint64_t, SecondRecord>& second_records() const {
    return second_records_;
  }

  // One for each record, by the run's own quorum. Never kClaimed.
  std::span<const StepState> states() const { return states_; }

  // All of the run, in the order of the log; ids are places in it.
  const std::vector<AttestationFacts>& attestations() const { return attestations_; }
  // Ids of a step's attestations, in the order of the log.
  std::vector<uint32_t> AttestationsOf(uint64_t step) const;

  // What the attestation with this id found; null unless it says mismatch.
  const MismatchFacts* FindMismatch(uint32_t attestation) const;

  const std::vector<CheckpointFacts>& checkpoints() const { return checkpoints_; }
  // By the trainer alone, in the order of the log.
  const std::vector<EvaluationFacts>& evaluations() const { return evaluations_; }

  // Openings that an attestation of the step needs under this quorum: fewer where the transcript
  // has fewer leaves.
  int OpeningsNeeded(uint64_t step, const Quorum& quorum) const;

 private:
  friend class Ledger;
  RunLedger(Digest run_id, RunRegistration registration, EntryRef entry, uint32_t trainer_key_id);

  uint32_t OffsetOf(uint64_t step) const { return static_cast<uint32_t>(step - first_step_); }

  Digest run_id_;
  RunRegistration registration_;
  EntryRef entry_;
  uint32_t trainer_key_id_;
  uint64_t first_step_;
  Digest chain_;
  std::vector<StepRecord> records_;
  std::vector<EntryRef> record_entries_;
  std::vector<StepState> states_;
  std::vector<uint32_t> last_attestation_;  // by step, or kNoId
  std::vector<AttestationFacts> attestations_;
  absl::flat_hash_map<uint32_t, MismatchFacts> mismatches_;  // by attestation
  absl::flat_hash_map<uint64_t, SecondRecord> second_records_;
  std::vector<CheckpointFacts> checkpoints_;
  absl::flat_hash_set<std::pair<uint64_t, uint32_t>> checkpoints_seen_;  // next step, key
  std::vector<EvaluationFacts> evaluations_;
  absl::flat_hash_set<std::pair<uint64_t, Digest>> evaluations_seen_;  // next step, texts
};

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_RUN_LEDGER_H_
