// SPDX-License-Identifier: Apache-2.0
//
// See keys.h.

#include "coordinator/views/keys.h"

#include <algorithm>

namespace lockstep::coordinator {
namespace {

constexpr char kBadOpening[] = "BAD_OPENING";

void Add(const audit::Ledger& ledger, const KeyTallies& tallies, KeyStanding* standing) {
  standing->credit += tallies.credit;
  for (const auto& [reason, count] : tallies.refused) standing->rejected_why[reason] += count;
  if (const uint64_t voided = tallies.credit.Of(Worth::kVoid); voided > 0) {
    standing->rejected_why[kBadOpening] += voided;
  }
  for (size_t i = 0; i < tallies.by_backend.size(); ++i) {
    if (tallies.by_backend[i] == 0) continue;
    const std::string& name = ledger.backends()[i];
    const auto at = std::lower_bound(standing->backends.begin(), standing->backends.end(), name);
    if (at == standing->backends.end() || *at != name) standing->backends.insert(at, name);
  }
  standing->last_seen_ms = std::max(standing->last_seen_ms, tallies.last_seen_ms);
}

}  // namespace

uint64_t KeyStanding::Rejected() const {
  uint64_t sum = 0;
  for (const auto& [reason, count] : rejected_why) sum += count;
  return sum;
}

std::vector<OperatorSummary> SummarizeOperators(const audit::Ledger& ledger, const Tallies& tallies,
                                                uint32_t begin, uint32_t end) {
  const auto& keys = ledger.keys().keys();
  const auto& operators = ledger.keys().operators();
  end = std::min(end, static_cast<uint32_t>(operators.size()));
  std::vector<OperatorSummary> made;
  for (uint32_t id = begin; id < end; ++id) {
    const audit::OperatorFacts& facts = operators[id];
    made.push_back({.id = id,
                    .key = keys[facts.key_id].key,
                    .name = facts.name,
                    .contact = facts.contact,
                    .since = facts.since,
                    .until = facts.until,
                    .standing = {}});
  }
  for (uint32_t key_id = 0; key_id < keys.size(); ++key_id) {
    const uint32_t id = keys[key_id].operator_id;
    if (id < begin || id >= end) continue;
    OperatorSummary& summary = made[id - begin];
    if (keys[key_id].role == audit::KeyRole::kWorker) ++summary.worker_keys;
    if (keys[key_id].since == summary.since) {
      summary.registered_ms = tallies.key(key_id).registered_ms;
    }
    Add(ledger, tallies.key(key_id), &summary.standing);
  }
  return made;
}

WorkerSummary SummarizeWorker(const audit::Ledger& ledger, const Tallies& tallies,
                              uint32_t key_id) {
  const audit::KeyFacts& facts = ledger.keys().keys()[key_id];
  const audit::OperatorFacts& who = ledger.keys().operators()[facts.operator_id];
  WorkerSummary made{.key_id = key_id,
                     .key = facts.key,
                     .operator_key = ledger.keys().keys()[who.key_id].key,
                     .operator_name = who.name,
                     .hardware = facts.hardware,
                     .ended = !ledger.keys().IsGood(key_id),
                     .since = facts.since,
                     .until = std::min(facts.until, who.until),
                     .registered_ms = tallies.key(key_id).registered_ms,
                     .standing = {}};
  Add(ledger, tallies.key(key_id), &made.standing);
  return made;
}

}  // namespace lockstep::coordinator
