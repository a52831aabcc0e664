// SPDX-License-Identifier: Apache-2.0
//
// The ledger's rules: what each kind of entry is held to, looking at everything and changing
// nothing. What an accepted entry then does is in ledger.cc. The rules in prose:
// docs/attestation.md.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/ledger/ledger.h"
#include "audit/ledger/refusal.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

absl::Status UnknownStep(const RunLedger& run, uint64_t step) {
  return Refuse(Refusal::kUnknownStep,
                absl::StrCat("run ", run.run_id().ToHex(), " has records of ", run.records().size(),
                             " steps from step ", run.first_step(), "; found step ", step));
}

absl::Status ChainBreak(absl::string_view what, absl::string_view expected,
                        absl::string_view found) {
  return Refuse(Refusal::kChainBreak,
                absl::StrCat(what, ": expected ", expected, "; found ", found));
}

// That the run was in this state before the step.
absl::Status CheckState(const RunLedger& run, absl::string_view what, uint64_t next_step,
                        const Digest& chain) {
  const std::optional<Digest> known = run.ChainBefore(next_step);
  if (!known) return UnknownStep(run, next_step);
  if (*known == chain) return absl::OkStatus();
  return ChainBreak(absl::StrCat(what, ".chain"), known->ToHex(), chain.ToHex());
}

// That the record is the one after those of the run.
absl::Status CheckFollows(const RunLedger& run, const StepRecord& record) {
  const RunManifest& manifest = run.registration().manifest;
  const uint64_t next = run.first_step() + run.records().size();
  if (record.step != next) {
    return ChainBreak("record", absl::StrCat("step ", next), absl::StrCat("step ", record.step));
  }
  if (record.previous_chain != run.chain()) {
    return ChainBreak("record.previous_chain", run.chain().ToHex(), record.previous_chain.ToHex());
  }
  uint64_t consumed = 0;
  if (!run.records().empty()) {
    consumed = run.records().back().tokens_before + run.records().back().tokens;
  } else if (manifest.parent.has_value()) {
    consumed = static_cast<uint64_t>(manifest.parent->tokens);
  }
  if (record.tokens_before != consumed) {
    return ChainBreak("record.tokens_before", absl::StrCat(consumed),
                      absl::StrCat(record.tokens_before));
  }
  const uint64_t tokens = TranscriptLeavesOf(manifest, consumed) *
                          static_cast<uint64_t>(manifest.topology.micro_batch) *
                          static_cast<uint64_t>(manifest.model.seq_len);
  if (tokens == 0) {
    return ChainBreak("record", "the end of the run, whose last phase is over", "another step");
  }
  if (record.tokens == tokens) return absl::OkStatus();
  return ChainBreak("record.tokens", absl::StrCat(tokens), absl::StrCat(record.tokens));
}

// That the attestation is about the record that is published, and means what it says.
absl::Status CheckAgainst(const Attestation& attestation, const StepRecord& record) {
  if (attestation.record != Sha256(AsBytes(EncodeStepRecord(record))) ||
      attestation.from_chain != record.previous_chain) {
    return Refuse(Refusal::kNotThePublishedRecord,
                  absl::StrCat("the attestation of step ", record.step,
                               " is about another record than the published one"));
  }
  const bool same_chain = attestation.computed_chain == ChainAfter(record);
  const bool matches = same_chain && attestation.roots == RootsOf(record);
  const bool honest = attestation.verdict == Verdict::kMatch ? matches : !same_chain;
  if (honest) return absl::OkStatus();
  return Refuse(Refusal::kFalseVerdict,
                absl::StrCat("the attestation says ", VerdictName(attestation.verdict), " of step ",
                             record.step, ", and its values say otherwise"));
}

}  // namespace

absl::Status Ledger::Check(const LogEntry& entry, Signatures signatures) const {
  return MakePlan(entry, signatures).status();
}

absl::StatusOr<Ledger::Plan> Ledger::MakePlan(const LogEntry& entry, Signatures how) const {
  return std::visit([&](const auto& payload) { return PlanFor(payload, entry, how); },
                    entry.payload());
}

absl::StatusOr<uint32_t> Ledger::RequireRun(const Digest& run_id) const {
  const auto found = runs_by_id_.find(run_id);
  if (found != runs_by_id_.end()) return found->second;
  return Refuse(Refusal::kUnknownRun, absl::StrCat("run ", run_id.ToHex(), " is not registered"));
}

absl::Status Ledger::RequireGood(uint32_t key_id) const {
  if (keys_.IsGood(key_id)) return absl::OkStatus();
  return Refuse(Refusal::kRevokedKey, absl::StrCat("the key ", keys_.keys()[key_id].key.ToHex(),
                                                   ", or its operator, was revoked or replaced"));
}

absl::StatusOr<uint32_t> Ledger::RequireSigner(const LogEntry& entry, Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 1));
  const uint32_t id = keys_.FindById(entry.signer_ids()[0]);
  if (id == kNoId) {
    return Refuse(Refusal::kUnknownKey, absl::StrCat("nobody registered the key with the id ",
                                                     entry.signer_ids()[0].ToHex()));
  }
  LOCKSTEP_RETURN_IF_ERROR(RequireGood(id));
  LOCKSTEP_RETURN_IF_ERROR(RequireSignature(entry, keys_.keys()[id].key, how));
  return id;
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const RunRegistration& registration,
                                             const LogEntry& entry, Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 1));
  const Digest run_id = RunIdOf(registration.manifest);
  if (runs_by_id_.contains(run_id)) {
    return Refuse(Refusal::kDuplicate, absl::StrCat("run ", run_id.ToHex(), " is registered"));
  }
  if (const uint32_t key = keys_.Find(registration.trainer_key); key != kNoId) {
    LOCKSTEP_RETURN_IF_ERROR(RequireGood(key));
  }
  if (registration.manifest.parent.has_value()) {
    // A parent that is known must have got there; one of another log is the trainer's word.
    const ParentSegment& parent = *registration.manifest.parent;
    const RunLedger* run = FindRun(parent.run_id);
    const auto chain = run == nullptr ? std::optional<Digest>(parent.chain)
                                      : run->ChainBefore(static_cast<uint64_t>(parent.step));
    if (chain != parent.chain) {
      return ChainBreak("segment", "a state of its parent run", "another one");
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(RequireSignature(entry, registration.trainer_key, how));
  return Plan();
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const PublishedRecord& published,
                                             const LogEntry& entry, Signatures how) const {
  Plan plan;
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(plan.run, RequireRun(published.run_id));
  const RunLedger& run = runs_[plan.run];
  plan.key_id = run.trainer_key_id();
  LOCKSTEP_RETURN_IF_ERROR(RequireGood(plan.key_id));
  LOCKSTEP_RETURN_IF_ERROR(RequireSignature(entry, keys_.keys()[plan.key_id].key, how));
  const StepRecord* known = run.FindRecord(published.record.step);
  if (known == nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(CheckFollows(run, published.record));
    return plan;
  }
  const SecondRecord* second = run.FindSecondRecord(published.record.step);
  if (*known == published.record || (second != nullptr && second->record == published.record)) {
    return Refuse(Refusal::kDuplicate,
                  absl::StrCat("this record of step ", published.record.step, " is published"));
  }
  if (second != nullptr) {
    return Refuse(Refusal::kSecondHistory,
                  absl::StrCat("two records of step ", published.record.step,
                               " that contradict each other are kept"));
  }
  plan.second_history = true;
  return plan;
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const CheckpointAnnouncement& announcement,
                                             const LogEntry& entry, Signatures how) const {
  Plan plan;
  LOCKSTEP_ASSIGN_OR_RETURN(plan.run, RequireRun(announcement.run_id));
  LOCKSTEP_ASSIGN_OR_RETURN(plan.key_id, RequireSigner(entry, how));
  const RunLedger& run = runs_[plan.run];
  if (plan.key_id != run.trainer_key_id() && keys_.keys()[plan.key_id].role != KeyRole::kWorker) {
    return Refuse(Refusal::kWrongRole,
                  "a checkpoint is announced by the run's trainer or a worker");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckState(run, "checkpoint", announcement.next_step, announcement.chain));
  if (run.checkpoints_seen_.contains({announcement.next_step, plan.key_id})) {
    return Refuse(
        Refusal::kDuplicate,
        absl::StrCat("this key has announced a checkpoint before step ", announcement.next_step));
  }
  return plan;
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const Evaluation& evaluation, const LogEntry& entry,
                                             Signatures how) const {
  Plan plan;
  LOCKSTEP_ASSIGN_OR_RETURN(plan.run, RequireRun(evaluation.run_id));
  LOCKSTEP_ASSIGN_OR_RETURN(plan.key_id, RequireSigner(entry, how));
  const RunLedger& run = runs_[plan.run];
  if (plan.key_id != run.trainer_key_id()) {
    return Refuse(Refusal::kWrongRole, "an evaluation is the run's trainer's to publish");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckState(run, "evaluation", evaluation.next_step, evaluation.chain));
  if (run.evaluations_seen_.contains({evaluation.next_step, TextsOf(evaluation)})) {
    return Refuse(Refusal::kDuplicate, absl::StrCat("the state before step ", evaluation.next_step,
                                                    " was evaluated on these texts"));
  }
  return plan;
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const KeyEvent& event, const LogEntry& entry,
                                             Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(keys_.Check(event, entry, how));
  return Plan();
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const Attestation& attestation, const LogEntry& entry,
                                             Signatures how) const {
  Plan plan;
  LOCKSTEP_ASSIGN_OR_RETURN(plan.run, RequireRun(attestation.run_id));
  LOCKSTEP_ASSIGN_OR_RETURN(plan.key_id, RequireSigner(entry, how));
  if (keys_.keys()[plan.key_id].role != KeyRole::kWorker) {
    return Refuse(Refusal::kWrongRole, "an attestation is signed by a worker's key");
  }
  const RunLedger& run = runs_[plan.run];
  const StepRecord* record = run.FindRecord(attestation.step);
  if (record == nullptr) return UnknownStep(run, attestation.step);
  LOCKSTEP_RETURN_IF_ERROR(CheckAgainst(attestation, *record));
  if (attestation.engine.numerics != run.registration().manifest.numerics) {
    return Refuse(Refusal::kWrongNumerics,
                  absl::StrCat("expected a replay under ", run.registration().manifest.numerics,
                               "; found ", attestation.engine.numerics));
  }
  for (uint32_t id = run.last_attestation_[run.OffsetOf(attestation.step)]; id != kNoId;
       id = run.attestations()[id].previous) {
    if (run.attestations()[id].key_id == plan.key_id) {
      return Refuse(Refusal::kDuplicate,
                    absl::StrCat("this key has attested step ", attestation.step));
    }
  }
  return plan;
}

absl::StatusOr<Ledger::Plan> Ledger::PlanAsked(const LogEntry& entry, Signatures how) const {
  const auto& opening = std::get<Opening>(entry.payload());
  Plan plan;
  const std::optional<AttestationRef> ref = FindAttestation(opening.attestation);
  if (!ref) {
    return Refuse(Refusal::kUnknownAttestation,
                  absl::StrCat("no attestation has the entry ", opening.attestation.ToHex()));
  }
  plan.run = ref->run;
  plan.attestation = ref->attestation;
  const RunLedger& run = runs_[ref->run];
  const AttestationFacts& facts = run.attestations()[ref->attestation];
  plan.key_id = facts.key_id;
  if (facts.standing != Standing::kMatch) {
    return Refuse(Refusal::kOpeningNotAsked, "only matches that are not void open leaves");
  }
  const uint64_t step = run.first_step() + facts.step_offset;
  const int needed = run.OpeningsNeeded(step, run.registration().quorum);
  const auto pending = pending_.find(PendingKey(plan.run, plan.attestation));
  if (pending == pending_.end()) {
    return Refuse(needed == 0 ? Refusal::kOpeningNotAsked : Refusal::kDuplicate,
                  "the attestation has all openings that it needs");
  }
  const std::optional<Ed25519Signature>& challenge = pending->second.challenge;
  if ((challenge && *challenge != opening.challenge) ||
      (how == Signatures::kVerify && !entry.IsChallengedBy(log_key_))) {
    return Refuse(Refusal::kWrongChallenge, "the challenge is not the log's for this attestation");
  }
  const uint64_t leaves = TranscriptLeavesOf(run.registration().manifest,
                                             run.records()[facts.step_offset].tokens_before);
  const std::vector<uint64_t> asked = ChallengedIndices(opening.challenge, leaves, needed);
  const auto found = std::find(asked.begin(), asked.end(), opening.index);
  if (found == asked.end()) {
    return Refuse(Refusal::kOpeningNotAsked,
                  absl::StrCat("the challenge does not ask for leaf ", opening.index));
  }
  plan.opening = static_cast<int>(found - asked.begin());
  if ((pending->second.given >> plan.opening & 1) != 0) {
    return Refuse(Refusal::kDuplicate, absl::StrCat("leaf ", opening.index, " is opened"));
  }
  return plan;
}

absl::Status Ledger::VerifyAsked(const Opening& opening, const Plan& plan) const {
  const RunLedger& run = runs_[plan.run];
  const StepRecord& record = run.records()[run.attestations()[plan.attestation].step_offset];
  const Pending& pending = pending_.at(PendingKey(plan.run, plan.attestation));
  return VerifyOpening(
      opening, {.transcript = record.transcript,
                .openings_digest = pending.openings_digest,
                .nonce = pending.nonce,
                .worker = keys_.keys()[plan.key_id].key,
                .leaves = TranscriptLeavesOf(run.registration().manifest, record.tokens_before)});
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const Opening& opening, const LogEntry& entry,
                                             Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(const Plan plan, PlanAsked(entry, how));
  LOCKSTEP_RETURN_IF_ERROR(RequireGood(plan.key_id));
  LOCKSTEP_RETURN_IF_ERROR(RequireSignature(entry, keys_.keys()[plan.key_id].key, how));
  const absl::Status shown = VerifyAsked(opening, plan);
  if (shown.ok()) return plan;
  return Refuse(Refusal::kOpeningWrong, absl::StrCat("opening: ", shown.message()));
}

absl::StatusOr<Ledger::Plan> Ledger::PlanFor(const Dispute& dispute, const LogEntry& entry,
                                             Signatures how) const {
  Plan plan;
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 1));
  LOCKSTEP_RETURN_IF_ERROR(RequireSignature(entry, log_key_, how));
  LOCKSTEP_ASSIGN_OR_RETURN(plan.run, RequireRun(dispute.run_id));
  const RunLedger& run = runs_[plan.run];
  if (run.FindRecord(dispute.step) == nullptr) return UnknownStep(run, dispute.step);
  if (disputes_seen_.contains(Sha256(AsBytes(EncodeDispute(dispute))))) {
    return Refuse(Refusal::kDuplicate, "this dispute is in the log");
  }
  if (dispute.reason == DisputeReason::kBadOpening) return PlanBadOpening(dispute, plan.run, how);
  const SecondRecord* second = run.FindSecondRecord(dispute.step);
  for (const Evidence& evidence : dispute.evidence) {
    const Digest* leaf_hash = std::get_if<Digest>(&evidence);
    if (leaf_hash == nullptr) continue;
    if (dispute.reason == DisputeReason::kSecondHistory) {
      if (second != nullptr && second->entry.leaf_hash == *leaf_hash) return plan;
      continue;
    }
    const std::optional<AttestationRef> ref = FindAttestation(*leaf_hash);
    if (!ref || ref->run != plan.run) continue;
    const AttestationFacts& facts = run.attestations()[ref->attestation];
    if (facts.standing == Standing::kMismatch && facts.step_offset == run.OffsetOf(dispute.step)) {
      plan.attestation = ref->attestation;
      return plan;
    }
  }
  return Refuse(Refusal::kEvidenceMissing,
                absl::StrCat("no evidence of a ", DisputeReasonName(dispute.reason), " at step ",
                             dispute.step, " is in the log under the hashes that are named"));
}

absl::StatusOr<Ledger::Plan> Ledger::PlanBadOpening(const Dispute& dispute, uint32_t run,
                                                    Signatures how) const {
  for (const Evidence& evidence : dispute.evidence) {
    const std::string* envelope = std::get_if<std::string>(&evidence);
    if (envelope == nullptr) continue;
    const absl::StatusOr<LogEntry> entry = LogEntry::Parse(*envelope);
    if (!entry.ok() || entry->kind() != EntryKind::kOpening) continue;
    const auto& opening = std::get<Opening>(entry->payload());
    absl::StatusOr<Plan> plan = PlanAsked(*entry, how);
    if (!plan.ok() || plan->run != run) continue;
    const RunLedger& facts = runs_[run];
    if (facts.attestations()[plan->attestation].step_offset != facts.OffsetOf(dispute.step) ||
        !RequireSignature(*entry, keys_.keys()[plan->key_id].key, how).ok() ||
        VerifyAsked(opening, *plan).ok()) {
      continue;
    }
    return plan;
  }
  return Refuse(Refusal::kEvidenceMissing,
                absl::StrCat("no envelope in it is a wrong opening, signed and asked for, of an "
                             "attestation of step ",
                             dispute.step));
}

}  // namespace lockstep::audit
