// SPDX-License-Identifier: Apache-2.0
//
// See evidence.h.

#include "coordinator/views/evidence.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "audit/evidence/log_entry.h"
#include "base/status.h"

namespace lockstep::coordinator {

AttestationSummary SummarizeAttestation(const audit::Ledger& ledger, const Tallies& tallies,
                                        const audit::RunLedger& run, uint32_t id) {
  const audit::AttestationFacts& facts = run.attestations()[id];
  const RunTallies& mine = tallies.run(tallies.PlaceOf(run.run_id()));
  const audit::KeyRegistry& keys = ledger.keys();
  const audit::KeyFacts& key = keys.keys()[facts.key_id];
  const audit::OperatorFacts& who = keys.operators()[key.operator_id];
  const uint64_t step = run.first_step() + facts.step_offset;
  AttestationSummary made{.log_index = facts.log_index,
                          .run = run.run_id(),
                          .step = step,
                          .worker_key = key.key,
                          .operator_key = keys.keys()[who.key_id].key,
                          .operator_name = who.name,
                          .hardware = key.hardware,
                          .backend = ledger.backends()[facts.backend_id],
                          .match = facts.standing != audit::Standing::kMismatch,
                          .worth = mine.worths[id],
                          .received_ms = mine.attestations_ms[id],
                          .openings_given = facts.openings,
                          .openings_needed = run.OpeningsNeeded(step, run.registration().quorum),
                          .difference = std::nullopt};
  if (const audit::MismatchFacts* found = run.FindMismatch(id)) made.difference = found->difference;
  return made;
}

absl::StatusOr<std::vector<std::optional<AttestationDetails>>> ReadDetails(
    StoreView& view, const Digest& run, uint64_t step, const std::vector<uint64_t>& log_indices) {
  std::vector<std::optional<AttestationDetails>> details;
  absl::flat_hash_map<Digest, size_t> places;
  for (const uint64_t log_index : log_indices) {
    absl::StatusOr<EntryRow> row = view.Entry(log_index);
    details.emplace_back();
    if (absl::IsNotFound(row.status())) continue;
    LOCKSTEP_RETURN_IF_ERROR(row.status());
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry entry, audit::LogEntry::Parse(row->envelope));
    places.emplace(row->leaf_hash, details.size() - 1);
    details.back() = AttestationDetails{.leaf_hash = row->leaf_hash,
                                        .envelope = std::move(row->envelope),
                                        .said = std::get<audit::Attestation>(entry.payload()),
                                        .openings = {}};
  }
  constexpr int64_t kAtOnce = 64;
  uint64_t first = 0;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<EntryRow> rows,
        view.Entries({.run = run, .kind = "opening", .step = step}, first, kAtOnce));
    for (const EntryRow& row : rows) {
      LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry entry, audit::LogEntry::Parse(row.envelope));
      const auto& opening = std::get<audit::Opening>(entry.payload());
      const auto of = places.find(opening.attestation);
      if (of != places.end()) details[of->second]->openings.push_back(row.log_index);
    }
    if (rows.size() < static_cast<size_t>(kAtOnce)) return details;
    first = rows.back().log_index + 1;
  }
}

absl::StatusOr<DisputeSummary> SummarizeDispute(const Coordinator& coordinator, StoreView& view,
                                                const audit::DisputeFacts& facts) {
  LOCKSTEP_ASSIGN_OR_RETURN(EntryRow row, view.Entry(facts.log_index));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry entry, audit::LogEntry::Parse(row.envelope));
  DisputeSummary made{.log_index = facts.log_index,
                      .run = {},
                      .step = facts.step,
                      .reason = facts.reason,
                      .received_ms = row.received_unix_ms,
                      .envelope = std::move(row.envelope),
                      .evidence = {},
                      .published = std::nullopt,
                      .computed = std::nullopt,
                      .difference = std::nullopt};
  std::vector<Digest> named;
  for (const audit::Evidence& evidence : std::get<audit::Dispute>(entry.payload()).evidence) {
    if (const auto* text = std::get_if<std::string>(&evidence)) {
      made.evidence.emplace_back(*text);
      continue;
    }
    const Digest& leaf_hash = std::get<Digest>(evidence);
    LOCKSTEP_ASSIGN_OR_RETURN(const EntryRow other, view.EntryByLeafHash(leaf_hash));
    made.evidence.emplace_back(
        audit::EntryRef{.log_index = other.log_index, .leaf_hash = leaf_hash});
    named.push_back(leaf_hash);
  }
  coordinator.Read([&](const audit::Ledger& ledger) {
    const audit::RunLedger& run = ledger.runs()[facts.run];
    made.run = run.run_id();
    made.state = run.states()[facts.step - run.first_step()];
    const audit::StepRecord& published = *run.FindRecord(facts.step);
    if (facts.reason == audit::DisputeReason::kSecondHistory) {
      if (const audit::SecondRecord* second = run.FindSecondRecord(facts.step)) {
        made.published = published;
        made.computed = second->record;
        made.difference = CompareRecords(published, second->record);
      }
    }
    if (facts.reason != audit::DisputeReason::kMismatch) return;
    for (const Digest& leaf_hash : named) {
      const std::optional<audit::AttestationRef> ref = ledger.FindAttestation(leaf_hash);
      if (!ref || ref->run != facts.run) continue;
      const audit::MismatchFacts* found = run.FindMismatch(ref->attestation);
      if (found == nullptr) continue;
      made.published = published;
      made.computed = found->computed;
      made.difference = found->difference;
      return;
    }
  });
  return made;
}

}  // namespace lockstep::coordinator
