// SPDX-License-Identifier: Apache-2.0
//
// Keys, attestations and openings: what auditors say, and what is done about it.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "audit/evidence/opening.h"
#include "audit/ledger/refusal.h"
#include "base/encoding.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/core/counts.h"
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

// So that a wrong one still fits into a dispute, as base64 within base64.
constexpr size_t kOpeningBytesMax = 32 << 10;

// The keys that an event names and that may have signed it.
std::vector<Ed25519PublicKey> KeysIn(const audit::KeyEvent& event) {
  struct {
    std::vector<Ed25519PublicKey> operator()(const audit::OperatorEvent& e) const {
      return {e.operator_key};
    }
    std::vector<Ed25519PublicKey> operator()(const audit::WorkerEvent& e) const {
      return {e.worker_key, e.operator_key};
    }
    std::vector<Ed25519PublicKey> operator()(const audit::RotateEvent& e) const {
      return {e.old_key, e.new_key};
    }
    std::vector<Ed25519PublicKey> operator()(const audit::RevokeEvent&) const { return {}; }
  } visitor;
  return std::visit(visitor, event);
}

// A key that the format refuses has a reason of its own: its owner must make another.
bool NamesRefusedKey(absl::string_view message) {
  return message.find("an Ed25519 public key") != absl::string_view::npos;
}

}  // namespace

absl::StatusOr<EntryRef> Coordinator::SubmitKeyEvent(const std::string& envelope) {
  absl::StatusOr<LogEntry> parsed = ParseAs(envelope, EntryKind::kKey);
  if (!parsed.ok()) {
    if (!NamesRefusedKey(parsed.status().message())) return parsed.status();
    return Refused(absl::StatusCode::kInvalidArgument, "KEY_REFUSED", parsed.status().message());
  }
  LogEntry entry = *std::move(parsed);
  const auto& event = std::get<audit::KeyEvent>(entry.payload());
  for (const Ed25519PublicKey& key : KeysIn(event)) LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, key));
  return Write<EntryRef>(
      SourceOf(entry.leaf_hash()), 1, [&](Work& work) -> absl::StatusOr<EntryRef> {
        const absl::StatusOr<EntryRow> known = work.view().EntryByLeafHash(entry.leaf_hash());
        if (known.ok())
          return EntryRef{.log_index = known->log_index, .leaf_hash = known->leaf_hash};
        if (!absl::IsNotFound(known.status())) return known.status();
        if (const auto* worker = std::get_if<audit::WorkerEvent>(&event)) {
          const uint32_t key_id = ledger_.keys().Find(worker->operator_key);
          if (key_id == audit::kNoId) {
            return Refused(absl::StatusCode::kPermissionDenied, "OPERATOR_UNKNOWN",
                           "the operator's key is not registered");
          }
          const uint32_t operator_id = ledger_.keys().keys()[key_id].operator_id;
          const auto& keys = ledger_.keys().keys();
          const auto workers = std::count_if(keys.begin(), keys.end(), [&](const auto& key) {
            return key.role == audit::KeyRole::kWorker && key.operator_id == operator_id;
          });
          if (static_cast<size_t>(workers) >= options_.worker_keys_per_operator_max) {
            return Refused(absl::StatusCode::kResourceExhausted, "QUOTA_EXCEEDED",
                           "the operator has as many worker keys as one may have");
          }
        }
        EntryRef where;
        const absl::Status taken = Append(work, entry, envelope, nullptr, nullptr, &where).status();
        if (!taken.ok()) return WithWireReason(taken, EntryKind::kKey);
        TellKey(work, event, where.log_index);
        // It may be a trainer's, whose operator gets no work of its runs.
        for (const RunLedger& run : ledger_.runs()) {
          LOCKSTEP_RETURN_IF_ERROR(
              table_.SetTrainer(run.run_id(), OperatorNameOf(run.trainer_key_id())));
        }
        return where;
      });
}

void Coordinator::TellKey(Work& work, const audit::KeyEvent& event, uint64_t log_index) {
  const std::vector<Ed25519PublicKey> named = KeysIn(event);
  const auto* const revoked = std::get_if<audit::RevokeEvent>(&event);
  const uint32_t id = ledger_.keys().Find(revoked != nullptr ? revoked->key : named.front());
  // A trainer's alone: no page shows it.
  if (id == audit::kNoId || ledger_.keys().keys()[id].role == audit::KeyRole::kTrainer) return;
  const audit::KeyFacts& facts = ledger_.keys().keys()[id];
  const bool worker = facts.role == audit::KeyRole::kWorker;
  Tell(work, "key",
       absl::StrCat(R"({")", worker ? "worker" : "operator", R"(":")",
                    Digest{facts.key.bytes}.ToHex(), R"(","log_index":)", log_index, "}"));
}

absl::StatusOr<AttestationAnswer> Coordinator::SubmitAttestation(const Ed25519PublicKey& key,
                                                                 const std::string& attempt_id,
                                                                 const std::string& envelope) {
  LOCKSTEP_ASSIGN_OR_RETURN(LogEntry entry, ParseAs(envelope, EntryKind::kAttestation));
  LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, key));
  // Everybody can read it in the log and bring it here again: its signer's turn is not for that.
  if (std::optional<AttestationAnswer> answer = FindLogged(key, entry)) return *std::move(answer);
  return Write<AttestationAnswer>(SourceOf(key.Id()), 4, [&](Work& work) {
    return Attest(work, key, attempt_id, entry, envelope);
  });
}

std::optional<AttestationAnswer> Coordinator::FindLogged(const Ed25519PublicKey& key,
                                                         const LogEntry& entry) const {
  const absl::ReaderMutexLock lock(&mutex_);
  const std::optional<audit::AttestationRef> ref = ledger_.FindAttestation(entry.leaf_hash());
  if (!ref || !RequireWorker(key).ok()) return std::nullopt;
  const RunLedger& run = ledger_.runs()[ref->run];
  const uint64_t log_index = run.attestations()[ref->attestation].log_index;
  // The ledger is told before the disk is.
  if (log_index >= log_->size()) return std::nullopt;
  return AnswerOf({.log_index = log_index, .leaf_hash = entry.leaf_hash()}, run,
                  std::get<audit::Attestation>(entry.payload()));
}

AttestationAnswer Coordinator::AnswerOf(const EntryRef& entry, const RunLedger& run,
                                        const audit::Attestation& said) const {
  AttestationAnswer answer{.entry = entry};
  const bool asks = said.verdict == audit::Verdict::kMatch &&
                    run.OpeningsNeeded(said.step, run.registration().quorum) > 0;
  if (asks) answer.challenge = audit::MakeChallenge(log_private_key_, entry.leaf_hash);
  return answer;
}

absl::StatusOr<AttestationAnswer> Coordinator::Attest(Work& work, const Ed25519PublicKey& key,
                                                      const std::string& attempt_id,
                                                      const LogEntry& entry,
                                                      const std::string& envelope) {
  const auto& said = std::get<audit::Attestation>(entry.payload());
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t key_id, RequireWorker(key));
  if (const auto ref = ledger_.FindAttestation(entry.leaf_hash())) {
    const RunLedger& run = ledger_.runs()[ref->run];
    return AnswerOf({.log_index = run.attestations()[ref->attestation].log_index,
                     .leaf_hash = entry.leaf_hash()},
                    run, said);
  }
  const Digest signer{key.bytes};
  const absl::StatusOr<CanaryRow> canary = work.view().Canary(said.lease_id);
  if (!canary.ok() && !absl::IsNotFound(canary.status())) return canary.status();
  const bool of_canary = canary.ok() && canary->step == said.step && canary->run == said.run_id &&
                         canary->key == signer;
  // It ended its lease; the answer may have been lost.
  if (of_canary && canary->state == CanaryState::kSeen && Saw(*canary, said)) {
    return AttestationAnswer();
  }
  absl::StatusOr<LiveLease*> lease = FindLive(work, key, attempt_id, said.lease_id);
  absl::Status refused = lease.ok() ? CheckLease(**lease, said) : lease.status();
  if (!refused.ok()) {
    const std::string reason = rpc::ReasonOf(refused);
    // Of a lease that never was, or was forgotten, anybody can make up any number.
    if (reason.empty() || reason == "LEASE_UNKNOWN") return refused;
    LOCKSTEP_RETURN_IF_ERROR(
        KeepEvidence(work, reason, &said.run_id, &said.step, &signer, envelope));
    return refused;
  }
  if (of_canary) return AnswerCanary(work, **lease, *canary, said, envelope);

  const RunLedger& run = *ledger_.FindRun(said.run_id);
  const int operators_before = OperatorsOf(run, said.step);
  EntryRef where;
  const absl::StatusOr<audit::Outcome> outcome =
      Append(work, entry, envelope, &said.run_id, &said.step, &where);
  if (!outcome.ok()) {
    const std::optional<audit::Refusal> refusal = audit::RefusalOf(outcome.status());
    if (!refusal) return outcome.status();
    absl::Status error = WithWireReason(outcome.status(), EntryKind::kAttestation);
    if (*refusal == audit::Refusal::kDuplicate) {
      // Its lease need not wait for a step that it has said something about.
      for (const uint32_t id : run.AttestationsOf(said.step)) {
        const audit::AttestationFacts& facts = run.attestations()[id];
        if (facts.key_id != key_id) continue;
        error = rpc::WithReason(error, "ATTESTATION_EXISTS",
                                {{"log_index", absl::StrCat(facts.log_index)}});
      }
      work.keep = true;
      LOCKSTEP_RETURN_IF_ERROR(FinishStep(work, **lease, said.step));
      return error;
    }
    LOCKSTEP_RETURN_IF_ERROR(
        KeepEvidence(work, rpc::ReasonOf(error), &said.run_id, &said.step, &signer, envelope));
    if (*refusal == audit::Refusal::kFalseVerdict) {
      LOCKSTEP_RETURN_IF_ERROR(ChangeTrust(work, key, [&](const KeyTrust& trust) {
        return AfterInvalid(trust, options_.policy.trust, work.now_ms);
      }));
    }
    return error;
  }
  (*lease)->contributed = true;
  TellAttestation(work, run, outcome->attestation);
  AttestationAnswer answer = AnswerOf(where, run, said);
  if (said.verdict == audit::Verdict::kMismatch) {
    LOCKSTEP_RETURN_IF_ERROR(AfterMismatch(work, run, outcome->attestation, where.leaf_hash));
  } else if (answer.challenge) {
    LOCKSTEP_RETURN_IF_ERROR(AskForOpenings(work, run, said, key, where));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(AfterMatch(work, run, outcome->attestation, operators_before));
  }
  TellStep(work, run, *outcome);
  LOCKSTEP_RETURN_IF_ERROR(FinishStep(work, **lease, said.step));
  return answer;
}

absl::Status Coordinator::CheckLease(const LiveLease& lease, const audit::Attestation& said) {
  const LeaseRow& row = lease.row;
  if (said.run_id != row.run || said.step < row.first_step || said.step >= row.end_step) {
    return Refused(absl::StatusCode::kFailedPrecondition, "STEP_OUTSIDE_LEASE",
                   absl::StrCat("the lease is on steps ", row.first_step, " to ", row.end_step - 1,
                                " of run ", row.run.ToHex()));
  }
  if (said.nonce != row.nonce) {
    return Refused(absl::StatusCode::kPermissionDenied, "NONCE_WRONG",
                   "the attestation has another nonce than the lease");
  }
  return absl::OkStatus();
}

bool Coordinator::Saw(const CanaryRow& canary, const audit::Attestation& said) const {
  return said.verdict == audit::Verdict::kMismatch && said.computed_record &&
         *said.computed_record == *ledger_.FindRun(canary.run)->FindRecord(canary.step);
}

// What was asked is whether the worker replays at all. One that does finds the record that is
// published, and says that the false one is wrong.
absl::StatusOr<AttestationAnswer> Coordinator::AnswerCanary(Work& work, LiveLease& lease,
                                                            const CanaryRow& canary,
                                                            const audit::Attestation& said,
                                                            const std::string& envelope) {
  const Ed25519PublicKey key{canary.key.bytes};
  CanaryRow answered = canary;
  const bool saw = Saw(canary, said);
  answered.state = saw ? CanaryState::kSeen : CanaryState::kMissed;
  LOCKSTEP_RETURN_IF_ERROR(work.store().PutCanary(answered));
  LOCKSTEP_RETURN_IF_ERROR(KeepEvidence(work, saw ? "CANARY_SEEN" : "CANARY_MISSED", &canary.run,
                                        &canary.step, &canary.key, envelope));
  LOCKSTEP_RETURN_IF_ERROR(ChangeTrust(work, key, [&](KeyTrust trust) {
    if (!saw) return AfterInvalid(trust, options_.policy.trust, work.now_ms);
    ++trust.canaries;
    return trust;
  }));
  // What can be read in the log earns nothing: only the lease's other steps do.
  lease.contributed = lease.contributed && saw;
  lease.attested[canary.step - lease.row.first_step] = true;
  LOCKSTEP_RETURN_IF_ERROR(EndLease(work, lease, LeaseState::kDone));
  if (saw) return AttestationAnswer();
  return Refused(absl::StatusCode::kFailedPrecondition, "NOT_THE_PUBLISHED_RECORD",
                 "the attestation is about another record than the published one");
}

absl::Status Coordinator::AfterMismatch(Work& work, const RunLedger& run, uint32_t attestation,
                                        const Digest& leaf_hash) {
  const audit::AttestationFacts& facts = run.attestations()[attestation];
  const uint64_t step = run.first_step() + facts.step_offset;
  const auto& keys = ledger_.keys().keys();
  const uint32_t operator_id = keys[facts.key_id].operator_id;
  const std::vector<uint32_t> ids = run.AttestationsOf(step);
  const bool alone = std::none_of(ids.begin(), ids.end(), [&](uint32_t id) {
    const audit::AttestationFacts& other = run.attestations()[id];
    return other.standing == audit::Standing::kMismatch &&
           keys[other.key_id].operator_id != operator_id;
  });
  // Against as many as make a result valid, and alone. Whoever finds the same does not pay for it.
  if (alone && OperatorsOf(run, step) >= std::max(run.registration().quorum.operators, 2)) {
    LOCKSTEP_RETURN_IF_ERROR(ChangeTrust(work, keys[facts.key_id].key, [&](const KeyTrust& trust) {
      return AfterInvalid(trust, options_.policy.trust, work.now_ms);
    }));
  }
  LOCKSTEP_RETURN_IF_ERROR(table_.AddMismatch(
      run.run_id(), facts.step_offset,
      AuditorOf(facts.key_id, ledger_.backends()[facts.backend_id]), work.now_ms));
  return AppendDispute(work, {.run_id = run.run_id(),
                              .step = step,
                              .reason = audit::DisputeReason::kMismatch,
                              .evidence = {leaf_hash}});
}

int Coordinator::OperatorsOf(const RunLedger& run, uint64_t step) const {
  audit::VerifierPolicy policy;
  policy.quorum = run.registration().quorum;
  return ledger_.TallyOf(run, step, policy).operators;
}

// A match that counts now. It is right when as many operators as it takes have said the same: then
// it is to the credit of all who did, and whoever said otherwise was wrong.
absl::Status Coordinator::AfterMatch(Work& work, const RunLedger& run, uint32_t attestation,
                                     int operators_before) {
  const audit::AttestationFacts facts = run.attestations()[attestation];
  if (!Counts(ledger_, run, facts)) return absl::OkStatus();
  const auto& keys = ledger_.keys().keys();
  const uint64_t step = run.first_step() + facts.step_offset;
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyTrust trust, work.view().Trust(FirstKeyOf(facts.key_id)));
  LOCKSTEP_RETURN_IF_ERROR(
      table_.AddMatch(run.run_id(), facts.step_offset,
                      AuditorOf(facts.key_id, ledger_.backends()[facts.backend_id]),
                      NeedsReplication(trust, options_.policy.trust, Uniform())));
  const std::vector<uint32_t> ids = run.AttestationsOf(step);
  const bool contested = std::any_of(ids.begin(), ids.end(), [&](uint32_t id) {
    return run.attestations()[id].standing == audit::Standing::kMismatch;
  });
  const Snapshot view = table_.View(work.now_ms);
  const auto at = std::find_if(view.runs.begin(), view.runs.end(),
                               [&](const RunView& r) { return r.run == run.run_id(); });
  const int needed =
      std::max(OperatorsWanted(*at, at->steps[facts.step_offset]), contested ? 2 : 1);
  if (OperatorsOf(run, step) < needed) return absl::OkStatus();
  const bool first = operators_before < needed;
  for (const uint32_t id : ids) {
    const audit::AttestationFacts& other = run.attestations()[id];
    const Ed25519PublicKey& key = keys[other.key_id].key;
    if (Counts(ledger_, run, other) && (first || id == attestation)) {
      LOCKSTEP_RETURN_IF_ERROR(ChangeTrust(work, key, AfterValidStep));
    } else if (other.standing == audit::Standing::kMismatch && first) {
      LOCKSTEP_RETURN_IF_ERROR(ChangeTrust(work, key, [&](const KeyTrust& was) {
        return AfterInvalid(was, options_.policy.trust, work.now_ms);
      }));
    }
  }
  return absl::OkStatus();
}

absl::Status Coordinator::AskForOpenings(Work& work, const RunLedger& run,
                                         const audit::Attestation& said,
                                         const Ed25519PublicKey& key, const EntryRef& entry) {
  const uint64_t leaves = audit::TranscriptLeavesOf(run.registration().manifest,
                                                    run.FindRecord(said.step)->tokens_before);
  const Ed25519Signature challenge = audit::MakeChallenge(log_private_key_, entry.leaf_hash);
  for (const uint64_t leaf : audit::ChallengedIndices(
           challenge, leaves, run.OpeningsNeeded(said.step, run.registration().quorum))) {
    LOCKSTEP_RETURN_IF_ERROR(
        work.store().PutChallenge({.attestation = entry.leaf_hash,
                                   .leaf_index = leaf,
                                   .run = run.run_id(),
                                   .step = said.step,
                                   .key = Digest{key.bytes},
                                   .asked_ms = work.now_ms,
                                   .due_ms = work.now_ms + options_.challenge_ms}));
  }
  return absl::OkStatus();
}

absl::StatusOr<EntryRef> Coordinator::SubmitOpenings(const Caller& caller,
                                                     const std::vector<std::string>& envelopes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTime(caller));
  std::vector<LogEntry> entries;
  for (const std::string& envelope : envelopes) {
    if (envelope.size() > kOpeningBytesMax) {
      return EnvelopeInvalid(absl::StrCat("an opening has at most ", kOpeningBytesMax, " bytes"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(LogEntry entry, ParseAs(envelope, EntryKind::kOpening));
    LOCKSTEP_RETURN_IF_ERROR(VerifyOn(entry, caller.key));
    entry.MarkChallengedBy(log_private_key_.public_key());
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return EnvelopeInvalid("expected at least one opening");
  return Write<EntryRef>(
      SourceOf(caller.key.Id()), 2 * static_cast<int64_t>(entries.size()),
      [&](Work& work) -> absl::StatusOr<EntryRef> {
        LOCKSTEP_RETURN_IF_ERROR(RequireWorker(caller.key).status());
        LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> before, Answered(work, caller));
        EntryRef last;
        for (size_t i = 0; i < entries.size(); ++i) {
          absl::StatusOr<EntryRef> opened = OpenLeaf(work, entries[i], envelopes[i]);
          if (!opened.ok()) {
            // What was shown before it stays.
            work.keep = work.keep || !rpc::ReasonOf(opened.status()).empty();
            return opened.status();
          }
          last = *opened;
        }
        if (!before) LOCKSTEP_RETURN_IF_ERROR(Remember(work, caller, "openings"));
        return last;
      });
}

absl::StatusOr<EntryRef> Coordinator::OpenLeaf(Work& work, const LogEntry& entry,
                                               const std::string& envelope) {
  const auto& opening = std::get<audit::Opening>(entry.payload());
  const absl::StatusOr<EntryRow> known = work.view().EntryByLeafHash(entry.leaf_hash());
  if (known.ok()) return EntryRef{.log_index = known->log_index, .leaf_hash = known->leaf_hash};
  if (!absl::IsNotFound(known.status())) return known.status();
  const std::optional<audit::AttestationRef> ref = ledger_.FindAttestation(opening.attestation);
  if (!ref) {
    return Refused(absl::StatusCode::kNotFound, "UNKNOWN_ATTESTATION",
                   "no attestation of the log has this leaf hash");
  }
  const RunLedger& run = ledger_.runs()[ref->run];
  const uint64_t step = run.first_step() + run.attestations()[ref->attestation].step_offset;
  const int operators_before = OperatorsOf(run, step);
  EntryRef where;
  const absl::StatusOr<audit::Outcome> outcome =
      Append(work, entry, envelope, &run.run_id(), &step, &where);
  if (!outcome.ok()) {
    if (audit::RefusalOf(outcome.status()) == audit::Refusal::kOpeningWrong) {
      LOCKSTEP_RETURN_IF_ERROR(PunishOpening(work, opening, envelope));
    }
    return WithWireReason(outcome.status(), EntryKind::kOpening);
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CloseChallenge(work, opening.attestation, &opening.index, ChallengeState::kAnswered));
  if (Counts(ledger_, run, run.attestations()[ref->attestation])) {
    LOCKSTEP_RETURN_IF_ERROR(AfterMatch(work, run, ref->attestation, operators_before));
  }
  TellStep(work, run, *outcome);
  return where;
}

absl::Status Coordinator::PunishOpening(Work& work, const audit::Opening& opening,
                                        const std::string& envelope) {
  const audit::AttestationRef ref = *ledger_.FindAttestation(opening.attestation);
  const RunLedger& run = ledger_.runs()[ref.run];
  const audit::AttestationFacts facts = run.attestations()[ref.attestation];
  work.keep = true;
  LOCKSTEP_RETURN_IF_ERROR(AppendDispute(work, {.run_id = run.run_id(),
                                                .step = run.first_step() + facts.step_offset,
                                                .reason = audit::DisputeReason::kBadOpening,
                                                .evidence = {envelope}}));
  LOCKSTEP_RETURN_IF_ERROR(
      CloseChallenge(work, opening.attestation, nullptr, ChallengeState::kFailed));
  return ChangeTrust(work, ledger_.keys().keys()[facts.key_id].key, [&](const KeyTrust& trust) {
    return AfterInvalid(trust, options_.policy.trust, work.now_ms);
  });
}

// Of all open leaves of the attestation, or of one.
absl::Status Coordinator::CloseChallenge(Work& work, const Digest& attestation,
                                         const uint64_t* leaf, ChallengeState state) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<ChallengeRow> rows, work.view().Challenges(attestation));
  for (ChallengeRow& row : rows) {
    if (row.state != ChallengeState::kOpen && row.state != ChallengeState::kExpired) continue;
    if (leaf != nullptr && row.leaf_index != *leaf) continue;
    row.state = state;
    LOCKSTEP_RETURN_IF_ERROR(work.store().PutChallenge(row));
  }
  return absl::OkStatus();
}

// An attestation whose leaves are never opened counts for nothing, and costs as a lease that was
// never worked off. They may still be opened later.
absl::Status Coordinator::ExpireChallenges(Work& work) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<ChallengeRow> rows,
                            work.view().OpenChallenges(work.now_ms));
  std::set<Digest> late;
  for (ChallengeRow& row : rows) {
    row.state = ChallengeState::kExpired;
    LOCKSTEP_RETURN_IF_ERROR(work.store().PutChallenge(row));
    if (!late.insert(row.attestation).second) continue;
    LOCKSTEP_RETURN_IF_ERROR(
        ChangeTrust(work, Ed25519PublicKey{row.key.bytes}, [&](const KeyTrust& trust) {
          return AfterExpired(trust, options_.policy.trust, work.now_ms);
        }));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::coordinator
