// SPDX-License-Identifier: Apache-2.0
//
// What accepted entries do, and what the facts add up to. Which entries are accepted:
// ledger_rules.cc.
#include "audit/ledger/ledger.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "audit/ledger/refusal.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

using Ids = absl::InlinedVector<uint32_t, 16>;

int CountDistinct(Ids& ids) {
  std::sort(ids.begin(), ids.end());
  return static_cast<int>(std::unique(ids.begin(), ids.end()) - ids.begin());
}

}  // namespace

absl::StatusOr<Outcome> Ledger::Apply(uint64_t index, absl::string_view bytes,
                                      Signatures signatures) {
  const absl::StatusOr<LogEntry> entry = LogEntry::Parse(bytes);
  if (!entry.ok()) return Refuse(Refusal::kMalformed, entry.status().message());
  return Apply(index, *entry, signatures);
}

absl::StatusOr<Outcome> Ledger::Apply(uint64_t index, const LogEntry& entry,
                                      Signatures signatures) {
  if (index < next_index_ || index == std::numeric_limits<uint64_t>::max()) {
    return Refuse(Refusal::kOutOfOrder,
                  absl::StrCat("expected an entry from index ", next_index_, " on; found ", index));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Plan plan, MakePlan(entry, signatures));
  Outcome outcome;
  outcome.kind = entry.kind();
  outcome.run = plan.run;
  outcome.attestation = plan.attestation;
  const EntryRef ref = {.log_index = index, .leaf_hash = entry.leaf_hash()};
  std::visit([&](const auto& payload) { Commit(payload, plan, ref, &outcome); }, entry.payload());
  next_index_ = index + 1;
  return outcome;
}

const RunLedger* Ledger::FindRun(const Digest& run_id) const {
  const auto found = runs_by_id_.find(run_id);
  return found == runs_by_id_.end() ? nullptr : &runs_[found->second];
}

std::optional<AttestationRef> Ledger::FindAttestation(const Digest& leaf_hash) const {
  const auto found = attestations_by_leaf_.find(leaf_hash);
  if (found == attestations_by_leaf_.end()) return std::nullopt;
  return found->second;
}

void Ledger::Commit(const RunRegistration& registration, const Plan& /*plan*/,
                    const EntryRef& entry, Outcome* outcome) {
  const Digest run_id = RunIdOf(registration.manifest);
  outcome->run = static_cast<uint32_t>(runs_.size());
  runs_by_id_.emplace(run_id, outcome->run);
  const uint32_t trainer = keys_.AddTrainer(entry.log_index, registration.trainer_key);
  runs_.push_back(RunLedger(run_id, registration, entry, trainer));
}

void Ledger::Commit(const PublishedRecord& published, const Plan& plan, const EntryRef& entry,
                    Outcome* outcome) {
  RunLedger& run = runs_[plan.run];
  outcome->step = published.record.step;
  outcome->second_history = plan.second_history;
  if (plan.second_history) {
    outcome->before = run.states_[run.OffsetOf(outcome->step)];
    run.second_records_.emplace(outcome->step,
                                SecondRecord{.entry = entry, .record = published.record});
    Recount(run, outcome->step);
  } else {
    run.records_.push_back(published.record);
    run.record_entries_.push_back(entry);
    run.states_.push_back(StepState::kUnaudited);
    run.last_attestation_.push_back(kNoId);
    run.chain_ = ChainAfter(published.record);
  }
  outcome->after = run.states_[run.OffsetOf(outcome->step)];
}

void Ledger::Commit(const CheckpointAnnouncement& announcement, const Plan& plan,
                    const EntryRef& entry, Outcome* outcome) {
  RunLedger& run = runs_[plan.run];
  outcome->step = announcement.next_step;
  run.checkpoints_seen_.insert({announcement.next_step, plan.key_id});
  run.checkpoints_.push_back(
      {.announcement = announcement, .key_id = plan.key_id, .log_index = entry.log_index});
}

void Ledger::Commit(const Evaluation& evaluation, const Plan& plan, const EntryRef& entry,
                    Outcome* outcome) {
  RunLedger& run = runs_[plan.run];
  outcome->step = evaluation.next_step;
  run.evaluations_seen_.insert({evaluation.next_step, TextsOf(evaluation)});
  run.evaluations_.push_back({.evaluation = evaluation, .log_index = entry.log_index});
}

void Ledger::Commit(const KeyEvent& event, const Plan& /*plan*/, const EntryRef& entry,
                    Outcome* /*outcome*/) {
  const uint32_t id = keys_.Apply(entry.log_index, event);
  const auto* rotation = std::get_if<RotateEvent>(&event);
  const uint32_t old_id = rotation == nullptr ? kNoId : keys_.Find(rotation->old_key);
  for (RunLedger& run : runs_) {
    if (run.trainer_key_id_ == old_id) {
      run.trainer_key_id_ = id;
    } else if (run.trainer_key_id_ == id) {
      // The trainer may have told its operator only now, whose matches never count for the run.
      for (uint64_t i = 0; i < run.records_.size(); ++i) Recount(run, run.first_step_ + i);
    }
  }
}

void Ledger::Commit(const Attestation& attestation, const Plan& plan, const EntryRef& entry,
                    Outcome* outcome) {
  RunLedger& run = runs_[plan.run];
  const uint32_t offset = run.OffsetOf(attestation.step);
  const auto id = static_cast<uint32_t>(run.attestations_.size());
  const bool matches = attestation.verdict == Verdict::kMatch;
  run.attestations_.push_back({.log_index = entry.log_index,
                               .key_id = plan.key_id,
                               .step_offset = offset,
                               .previous = run.last_attestation_[offset],
                               .backend_id = BackendId(attestation.backend.backend_class),
                               .standing = matches ? Standing::kMatch : Standing::kMismatch});
  run.last_attestation_[offset] = id;
  attestations_by_leaf_.emplace(entry.leaf_hash,
                                AttestationRef{.run = plan.run, .attestation = id});
  if (matches && run.OpeningsNeeded(attestation.step, run.registration_.quorum) > 0) {
    pending_.emplace(PendingKey(plan.run, id),
                     Pending{.nonce = attestation.nonce,
                             .openings_digest = attestation.openings_digest,
                             .challenge = std::nullopt});
  }
  if (attestation.computed_record.has_value()) {
    run.mismatches_.emplace(id, MismatchFacts{.computed = *attestation.computed_record,
                                              .difference = attestation.difference});
  }
  outcome->attestation = id;
  outcome->step = attestation.step;
  outcome->before = run.states_[offset];
  Recount(run, attestation.step);
  outcome->after = run.states_[offset];
}

void Ledger::Commit(const Opening& opening, const Plan& plan, const EntryRef& /*entry*/,
                    Outcome* outcome) {
  RunLedger& run = runs_[plan.run];
  AttestationFacts& facts = run.attestations_[plan.attestation];
  const auto pending = pending_.find(PendingKey(plan.run, plan.attestation));
  pending->second.challenge = opening.challenge;
  pending->second.given |= uint32_t{1} << plan.opening;
  facts.openings = static_cast<uint8_t>(std::popcount(pending->second.given));
  outcome->step = run.first_step_ + facts.step_offset;
  if (facts.openings >= run.OpeningsNeeded(outcome->step, run.registration_.quorum)) {
    pending_.erase(pending);
  }
  outcome->before = run.states_[facts.step_offset];
  Recount(run, outcome->step);
  outcome->after = run.states_[facts.step_offset];
}

void Ledger::Commit(const Dispute& dispute, const Plan& plan, const EntryRef& entry,
                    Outcome* outcome) {
  RunLedger& run = runs_[plan.run];
  const uint32_t offset = run.OffsetOf(dispute.step);
  outcome->step = dispute.step;
  outcome->before = run.states_[offset];
  disputes_.push_back({.log_index = entry.log_index,
                       .run = plan.run,
                       .step = dispute.step,
                       .reason = dispute.reason});
  disputes_seen_.insert(Sha256(AsBytes(EncodeDispute(dispute))));
  if (dispute.reason == DisputeReason::kBadOpening) {
    run.attestations_[plan.attestation].standing = Standing::kVoid;
    pending_.erase(PendingKey(plan.run, plan.attestation));
    Recount(run, dispute.step);
  }
  outcome->after = run.states_[offset];
}

StepTally Ledger::Tally(const RunLedger& run, uint64_t step, const Quorum& quorum,
                        const TrustedOperators& trusted) const {
  StepTally tally;
  const uint32_t offset = run.OffsetOf(step);
  tally.second_history = run.second_records_.contains(step);
  const int needed = run.OpeningsNeeded(step, quorum);
  const uint32_t trainers_operator = keys_.keys()[run.trainer_key_id_].operator_id;
  Ids operators;
  Ids backends;
  for (uint32_t id = run.last_attestation_[offset]; id != kNoId;
       id = run.attestations_[id].previous) {
    const AttestationFacts& facts = run.attestations_[id];
    const uint32_t operator_id = keys_.keys()[facts.key_id].operator_id;
    if (!trusted.empty() && !trusted[operator_id]) continue;
    if (facts.standing == Standing::kVoid) {
      ++tally.voided;
    } else if (facts.standing == Standing::kMismatch) {
      ++tally.mismatches;
    } else if (operator_id == trainers_operator) {
      continue;
    } else if (facts.openings < needed) {
      ++tally.awaiting_openings;
    } else {
      ++tally.matches;
      operators.push_back(operator_id);
      backends.push_back(facts.backend_id);
    }
  }
  tally.operators = CountDistinct(operators);
  tally.backends = CountDistinct(backends);
  return tally;
}

void Ledger::Recount(RunLedger& run, uint64_t step) {
  const Quorum& quorum = run.registration_.quorum;
  run.states_[run.OffsetOf(step)] = StateOf(Tally(run, step, quorum, {}), quorum);
}

Ledger::TrustedOperators Ledger::TrustedOf(const VerifierPolicy& policy) const {
  if (!policy.trusted_operators) return {};
  // One more, so that a list which trusts nobody is not taken for none.
  TrustedOperators trusted(keys_.operators().size() + 1, false);
  for (const KeyFacts& key : keys_.keys()) {
    if (key.role == KeyRole::kOperator && policy.trusted_operators->contains(key.key)) {
      trusted[key.operator_id] = true;
    }
  }
  return trusted;
}

StepTally Ledger::TallyOf(const RunLedger& run, uint64_t step, const VerifierPolicy& policy) const {
  if (run.FindRecord(step) == nullptr) return {};
  return Tally(run, step, policy.quorum, TrustedOf(policy));
}

std::vector<StepTally> Ledger::TalliesUnder(const RunLedger& run,
                                            const VerifierPolicy& policy) const {
  const TrustedOperators trusted = TrustedOf(policy);
  std::vector<StepTally> tallies;
  tallies.reserve(run.records_.size());
  for (uint64_t i = 0; i < run.records_.size(); ++i) {
    tallies.push_back(Tally(run, run.first_step_ + i, policy.quorum, trusted));
  }
  return tallies;
}

uint16_t Ledger::BackendId(const std::string& name) {
  const auto id = static_cast<uint16_t>(std::find(backends_.begin(), backends_.end(), name) -
                                        backends_.begin());
  if (id == backends_.size()) backends_.push_back(name);
  return id;
}

}  // namespace lockstep::audit
