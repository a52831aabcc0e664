// SPDX-License-Identifier: Apache-2.0
//
// See tallies.h.

#include "coordinator/core/tallies.h"

#include <algorithm>

namespace lockstep::coordinator {
namespace {

constexpr int64_t kMinuteMs = 60'000;

template <typename T>
T& Grown(std::vector<T>& items, size_t index) {
  if (items.size() <= index) items.resize(index + 1);
  return items[index];
}

}  // namespace

void HourRate::Add(int64_t unix_ms) {
  const int64_t minute = std::max<int64_t>(unix_ms, 0) / kMinuteMs;
  if (minute > newest_) {
    const int64_t passed = std::min(minute - newest_, kMinutes);
    for (int64_t i = 0; i < passed; ++i) {
      counts_[static_cast<size_t>((minute - i) % kMinutes)] = 0;
    }
    newest_ = minute;
  }
  if (newest_ - minute < kMinutes) ++counts_[static_cast<size_t>(minute % kMinutes)];
}

uint64_t HourRate::Sum(int64_t now_unix_ms) const {
  const int64_t now = now_unix_ms / kMinuteMs;
  uint64_t sum = 0;
  for (int64_t minute = std::max<int64_t>(now - kMinutes + 1, 0); minute <= now; ++minute) {
    const bool kept = minute <= newest_ && newest_ - minute < kMinutes;
    if (kept) sum += counts_[static_cast<size_t>(minute % kMinutes)];
  }
  return sum;
}

Credit& Credit::operator+=(const Credit& other) {
  for (size_t i = 0; i < by_worth.size(); ++i) by_worth[i] += other.by_worth[i];
  return *this;
}

void Tallies::Apply(const audit::Ledger& ledger, const audit::Outcome& outcome,
                    int64_t received_ms) {
  switch (outcome.kind) {
    case audit::EntryKind::kRun:
      places_.emplace(ledger.runs()[outcome.run].run_id(), outcome.run);
      Grown(runs_, outcome.run).registered_ms = received_ms;
      AddKeys(ledger, received_ms);  // its trainer's
      ReweighAll(ledger);            // of which there is nothing yet
      break;
    case audit::EntryKind::kRecord:
      if (!outcome.second_history) {
        AddRecord(ledger.runs()[outcome.run], runs_[outcome.run], received_ms);
      }
      break;
    case audit::EntryKind::kCheckpoint:
      AddSeen(ledger.runs()[outcome.run].checkpoints().back().key_id, received_ms);
      break;
    case audit::EntryKind::kKey:
      AddKeys(ledger, received_ms);
      ReweighAll(ledger);
      break;
    case audit::EntryKind::kAttestation:
      AddAttestation(ledger, outcome, received_ms);
      break;
    case audit::EntryKind::kOpening:
      Reweigh(ledger, outcome.run, outcome.attestation);
      AddSeen(ledger.runs()[outcome.run].attestations()[outcome.attestation].key_id, received_ms);
      break;
    case audit::EntryKind::kEvaluation:
      AddSeen(ledger.runs()[outcome.run].trainer_key_id(), received_ms);
      break;
    case audit::EntryKind::kDispute:
      ++runs_[outcome.run].disputes;
      if (outcome.attestation != audit::kNoId) Reweigh(ledger, outcome.run, outcome.attestation);
      break;
  }
  const bool confirmed = outcome.after == audit::StepState::kConfirmed &&
                         outcome.before != audit::StepState::kConfirmed;
  if (confirmed && received_ms != kTimeUnknown) runs_[outcome.run].confirmed.Add(received_ms);
}

void Tallies::AddRefused(uint32_t key_id, absl::string_view reason, uint64_t count) {
  Grown(keys_, key_id).refused[std::string(reason)] += count;
}

void Tallies::AddSeen(uint32_t key_id, int64_t unix_ms) {
  if (key_id == audit::kNoId) return;
  KeyTallies& key = Grown(keys_, key_id);
  key.last_seen_ms = std::max(key.last_seen_ms, unix_ms);
}

void Tallies::AddKeys(const audit::Ledger& ledger, int64_t received_ms) {
  for (size_t id = keys_.size(); id < ledger.keys().keys().size(); ++id) {
    keys_.emplace_back().registered_ms = received_ms;
  }
}

void Tallies::AddRecord(const audit::RunLedger& run, RunTallies& tallies, int64_t received_ms) {
  const audit::StepRecord& record = run.records().back();
  tallies.points.push_back({.loss = record.loss,
                            .z_loss = record.z_loss,
                            .gradient_norm = record.gradient_norm,
                            .learning_rate = record.learning_rate,
                            .outcome = record.outcome});
  tallies.records_ms.push_back(received_ms);
  if (received_ms != kTimeUnknown) tallies.records.Add(received_ms);
}

void Tallies::AddAttestation(const audit::Ledger& ledger, const audit::Outcome& outcome,
                             int64_t received_ms) {
  const audit::RunLedger& run = ledger.runs()[outcome.run];
  RunTallies& tallies = runs_[outcome.run];
  const audit::AttestationFacts& facts = run.attestations()[outcome.attestation];
  const Worth worth = WorthOf(ledger, run, facts);
  tallies.worths.push_back(worth);
  tallies.attestations_ms.push_back(received_ms);
  Count(ledger, facts, worth, tallies, true);
  AddSeen(facts.key_id, received_ms);
  ++Grown(keys_[facts.key_id].by_backend, facts.backend_id);
}

void Tallies::Reweigh(const audit::Ledger& ledger, uint32_t run_place, uint32_t attestation) {
  const audit::RunLedger& run = ledger.runs()[run_place];
  RunTallies& tallies = runs_[run_place];
  const audit::AttestationFacts& facts = run.attestations()[attestation];
  const Worth before = tallies.worths[attestation];
  const Worth after = WorthOf(ledger, run, facts);
  if (before == after) return;
  Count(ledger, facts, before, tallies, false);
  Count(ledger, facts, after, tallies, true);
  tallies.worths[attestation] = after;
}

// A key event may have told who a trainer's operator is: its matches in that run never counted.
void Tallies::ReweighAll(const audit::Ledger& ledger) {
  for (uint32_t place = 0; place < runs_.size(); ++place) {
    const audit::RunLedger& run = ledger.runs()[place];
    const uint32_t now = ledger.keys().keys()[run.trainer_key_id()].operator_id;
    if (runs_[place].trainer_operator == now) continue;
    runs_[place].trainer_operator = now;
    for (uint32_t id = 0; id < run.attestations().size(); ++id) Reweigh(ledger, place, id);
  }
}

void Tallies::Count(const audit::Ledger& ledger, const audit::AttestationFacts& facts, Worth worth,
                    RunTallies& tallies, bool add) {
  const uint64_t one = add ? 1 : ~uint64_t{0};  // modulo 2^64
  tallies.all.by_worth[static_cast<size_t>(worth)] += one;
  Grown(keys_, facts.key_id).credit.by_worth[static_cast<size_t>(worth)] += one;
  if (worth != Worth::kCounts) return;
  Grown(tallies.matches_by_backend, facts.backend_id) += one;
  const uint32_t operator_id = ledger.keys().keys()[facts.key_id].operator_id;
  const auto found = tallies.matches_by_operator.try_emplace(operator_id, 0).first;
  found->second += one;
  if (found->second == 0) tallies.matches_by_operator.erase(found);
}

}  // namespace lockstep::coordinator
