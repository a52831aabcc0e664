// SPDX-License-Identifier: Apache-2.0
//
// Reading a run's facts.
#include "audit/ledger/run_ledger.h"

#include <algorithm>
#include <utility>

#include "audit/evidence/opening.h"

namespace lockstep::audit {

RunLedger::RunLedger(Digest run_id, RunRegistration registration, EntryRef entry,
                     uint32_t trainer_key_id)
    : run_id_(run_id),
      registration_(std::move(registration)),
      entry_(entry),
      trainer_key_id_(trainer_key_id),
      first_step_(registration_.first_step()),
      chain_(registration_.first_chain()) {}

const StepRecord* RunLedger::FindRecord(uint64_t step) const {
  if (step < first_step_ || step - first_step_ >= records_.size()) return nullptr;
  return &records_[step - first_step_];
}

std::optional<Digest> RunLedger::ChainBefore(uint64_t step) const {
  if (const StepRecord* record = FindRecord(step); record != nullptr) return record->previous_chain;
  if (step == first_step_ + records_.size()) return chain_;
  return std::nullopt;
}

const SecondRecord* RunLedger::FindSecondRecord(uint64_t step) const {
  const auto found = second_records_.find(step);
  return found == second_records_.end() ? nullptr : &found->second;
}

std::vector<uint32_t> RunLedger::AttestationsOf(uint64_t step) const {
  std::vector<uint32_t> ids;
  if (FindRecord(step) == nullptr) return ids;
  for (uint32_t id = last_attestation_[OffsetOf(step)]; id != kNoId;
       id = attestations_[id].previous) {
    ids.push_back(id);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

const MismatchFacts* RunLedger::FindMismatch(uint32_t attestation) const {
  const auto found = mismatches_.find(attestation);
  return found == mismatches_.end() ? nullptr : &found->second;
}

int RunLedger::OpeningsNeeded(uint64_t step, const Quorum& quorum) const {
  const StepRecord* record = FindRecord(step);
  if (record == nullptr) return quorum.openings;
  const uint64_t leaves = TranscriptLeavesOf(registration_.manifest, record->tokens_before);
  return static_cast<int>(std::min<uint64_t>(leaves, static_cast<uint64_t>(quorum.openings)));
}

}  // namespace lockstep::audit
