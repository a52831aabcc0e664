// SPDX-License-Identifier: Apache-2.0
//
// Runs' lists and the log's. See lists.h.

#include "coordinator/api/lists.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "coordinator/core/reasons.h"

namespace lockstep::coordinator {
namespace {

// Items that are looked at under one lock.
constexpr uint64_t kScannedAtOnce = 1 << 16;
// Envelopes of a page.
constexpr size_t kPageBytesMax = 3 << 20;

// What a filter asks of an attestation, by the ids of the ledger.
struct AttestationIds {
  uint32_t operator_id = audit::kNoId;
  uint32_t key_id = audit::kNoId;
  std::optional<size_t> backend_id = std::nullopt;
  bool nothing = false;  // fits: there is no such key or backend

  bool Fit(const audit::KeyRegistry& keys, const audit::AttestationFacts& facts) const {
    return (operator_id == audit::kNoId || keys.keys()[facts.key_id].operator_id == operator_id) &&
           (key_id == audit::kNoId || facts.key_id == key_id) &&
           (!backend_id || facts.backend_id == *backend_id);
  }
};

AttestationIds IdsOf(const audit::Ledger& ledger, const AttestationFilter& filter) {
  AttestationIds ids;
  const auto find = [&](const Digest& key) {
    const uint32_t id = ledger.keys().FindById(Ed25519PublicKey{key.bytes}.Id());
    ids.nothing = ids.nothing || id == audit::kNoId;
    return id;
  };
  if (filter.operator_key) {
    const uint32_t id = find(*filter.operator_key);
    if (id != audit::kNoId) ids.operator_id = ledger.keys().keys()[id].operator_id;
    ids.nothing = ids.nothing || ids.operator_id == audit::kNoId;
  }
  if (filter.worker_key) ids.key_id = find(*filter.worker_key);
  if (filter.backend) {
    const auto& backends = ledger.backends();
    const auto at = std::find(backends.begin(), backends.end(), *filter.backend);
    if (at == backends.end()) ids.nothing = true;
    ids.backend_id = static_cast<size_t>(at - backends.begin());
  }
  return ids;
}

// Items 0 to count - 1, the places of which are theirs, in either direction. A place is that of the
// next item; downwards it is one more, so that 0 is the end.
struct Walk {
  uint64_t count;
  bool down;

  uint64_t First() const { return down ? count : 0; }
  bool AtEnd(uint64_t place) const { return down ? place == 0 : place >= count; }
  uint64_t Item(uint64_t place) const { return down ? place - 1 : place; }
  uint64_t After(uint64_t place) const { return down ? place - 1 : place + 1; }
  uint64_t Clamp(uint64_t place) const { return std::min(place, count); }
};

}  // namespace

absl::StatusOr<Source<StepSummary>> StepsOf(const Coordinator& coordinator, const Digest& run_id,
                                            std::optional<uint64_t> begin,
                                            std::optional<audit::StepState> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Coverage now, coordinator.CoverageOf(run_id));
  const uint64_t first = begin && *begin > now.first_step ? *begin - now.first_step : 0;
  return [&coordinator, run_id, first, state, steps = now.states.size()](
             std::optional<uint64_t> place, size_t limit) -> absl::StatusOr<RowsFrom<StepSummary>> {
    LOCKSTEP_ASSIGN_OR_RETURN(const Coverage coverage, coordinator.CoverageOf(run_id));
    uint64_t offset = place.value_or(first);
    std::vector<uint64_t> offsets;
    for (; offset < steps && offsets.size() < limit; ++offset) {
      if (!state || coverage.states[offset] == *state) offsets.push_back(offset);
    }
    RowsFrom<StepSummary> page;
    page.rows.reserve(offsets.size());
    coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
      const audit::RunLedger& run = *ledger.FindRun(run_id);
      for (const uint64_t i : offsets) {
        page.rows.push_back(SummarizeStep(ledger, tallies, run, i, coverage.states[i]));
      }
    });
    if (offset < steps) page.next = offset;
    return page;
  };
}

absl::StatusOr<Source<AttestationSummary>> AttestationsOf(const Coordinator& coordinator,
                                                          const Digest& run_id,
                                                          const AttestationFilter& filter) {
  absl::Status status;
  AttestationIds ids;
  std::optional<std::vector<uint32_t>> of_step;  // without: all of the run
  uint64_t count = 0;
  coordinator.Read([&](const audit::Ledger& ledger) {
    const audit::RunLedger* run = ledger.FindRun(run_id);
    if (run == nullptr) {
      status = RunUnknown();
      return;
    }
    ids = IdsOf(ledger, filter);
    count = run->attestations().size();
    if (!filter.step) return;
    of_step = run->AttestationsOf(*filter.step);
    count = of_step->size();
  });
  LOCKSTEP_RETURN_IF_ERROR(status);
  const Walk walk{.count = ids.nothing ? 0 : count, .down = filter.newest};
  return [&coordinator, run_id, ids, walk, match = filter.match, of_step = std::move(of_step)](
             std::optional<uint64_t> from,
             size_t limit) -> absl::StatusOr<RowsFrom<AttestationSummary>> {
    uint64_t place = walk.Clamp(from.value_or(walk.First()));
    RowsFrom<AttestationSummary> page;
    while (!walk.AtEnd(place) && page.rows.size() < limit) {
      coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
        const audit::RunLedger& run = *ledger.FindRun(run_id);
        for (uint64_t seen = 0;
             seen < kScannedAtOnce && page.rows.size() < limit && !walk.AtEnd(place);
             ++seen, place = walk.After(place)) {
          const uint64_t item = walk.Item(place);
          const auto id = of_step ? (*of_step)[item] : static_cast<uint32_t>(item);
          const audit::AttestationFacts& facts = run.attestations()[id];
          const bool is_match = facts.standing != audit::Standing::kMismatch;
          if (!ids.Fit(ledger.keys(), facts) || (match && *match != is_match)) continue;
          page.rows.push_back(SummarizeAttestation(ledger, tallies, run, id));
        }
      });
    }
    if (!walk.AtEnd(place)) page.next = place;
    return page;
  };
}

absl::StatusOr<std::vector<AttestationSummary>> NewestAttestationsOf(
    const Coordinator& coordinator, const AttestationFilter& filter, size_t limit) {
  std::vector<Digest> runs;
  uint64_t attested = 0;  // in all, so that nobody looks for more
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    for (const audit::RunLedger& run : ledger.runs()) runs.push_back(run.run_id());
    const AttestationIds ids = IdsOf(ledger, filter);
    for (uint32_t id = 0; id < ledger.keys().keys().size(); ++id) {
      if (ids.nothing || !ids.Fit(ledger.keys(), {.key_id = id})) continue;
      for (const uint64_t count : tallies.key(id).by_backend) attested += count;
    }
  });
  std::vector<AttestationSummary> newest;
  AttestationFilter backwards = filter;
  backwards.newest = true;
  uint64_t found = 0;
  for (auto run = runs.rbegin(); run != runs.rend() && found < attested; ++run) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Source<AttestationSummary> source,
                              AttestationsOf(coordinator, *run, backwards));
    LOCKSTEP_ASSIGN_OR_RETURN(RowsFrom<AttestationSummary> page,
                              source(std::nullopt, std::min<uint64_t>(limit, attested - found)));
    found += page.rows.size();
    for (AttestationSummary& row : page.rows) newest.push_back(std::move(row));
  }
  std::sort(newest.begin(), newest.end(),
            [](const auto& a, const auto& b) { return a.log_index > b.log_index; });
  if (newest.size() > limit) newest.resize(limit);
  return newest;
}

absl::StatusOr<Source<DisputeSummary>> DisputesOf(const Coordinator& coordinator,
                                                  const std::optional<Digest>& run_id,
                                                  bool newest) {
  absl::Status status;
  std::optional<uint32_t> wanted;
  uint64_t count = 0;
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    count = ledger.disputes().size();
    if (!run_id) return;
    if (ledger.FindRun(*run_id) == nullptr) {
      status = RunUnknown();
    } else {
      wanted = static_cast<uint32_t>(tallies.PlaceOf(*run_id));
    }
  });
  LOCKSTEP_RETURN_IF_ERROR(status);
  const Walk walk{.count = count, .down = newest};
  return [&coordinator, wanted, walk](std::optional<uint64_t> from,
                                      size_t limit) -> absl::StatusOr<RowsFrom<DisputeSummary>> {
    uint64_t place = walk.Clamp(from.value_or(walk.First()));
    std::vector<std::pair<uint64_t, audit::DisputeFacts>> facts;  // with their places
    while (!walk.AtEnd(place) && facts.size() < limit) {
      coordinator.Read([&](const audit::Ledger& ledger) {
        for (uint64_t seen = 0; seen < kScannedAtOnce && facts.size() < limit && !walk.AtEnd(place);
             ++seen, place = walk.After(place)) {
          const audit::DisputeFacts& dispute = ledger.disputes()[walk.Item(place)];
          if (!wanted || dispute.run == *wanted) facts.emplace_back(place, dispute);
        }
      });
    }
    RowsFrom<DisputeSummary> page;
    if (!walk.AtEnd(place)) page.next = place;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator.ReadStore());
    size_t bytes = 0;
    for (const auto& [at, dispute] : facts) {
      if (bytes > kPageBytesMax) {
        page.next = at;
        break;
      }
      absl::StatusOr<DisputeSummary> row = SummarizeDispute(coordinator, *view, dispute);
      if (absl::IsNotFound(row.status())) continue;  // not on the disk yet
      LOCKSTEP_RETURN_IF_ERROR(row.status());
      bytes += row->envelope.size();
      page.rows.push_back(*std::move(row));
    }
    return page;
  };
}

absl::StatusOr<Source<LeaseSummary, LeasePlace>> LeasesOf(const Coordinator& coordinator,
                                                          const LeaseFilter& filter) {
  bool known = true;
  coordinator.Read([&](const audit::Ledger& ledger) {
    known = !filter.run || ledger.FindRun(*filter.run) != nullptr;
  });
  if (!known) return RunUnknown();
  return
      [&coordinator, filter](const std::optional<LeasePlace>& place,
                             size_t limit) -> absl::StatusOr<RowsFrom<LeaseSummary, LeasePlace>> {
        LOCKSTEP_ASSIGN_OR_RETURN(LeasePage page, ReadLeases(coordinator, filter, place, limit));
        return RowsFrom<LeaseSummary, LeasePlace>{std::move(page.leases), std::move(page.next)};
      };
}

Source<EntryRow> LogEntries(const Coordinator& coordinator, std::optional<uint64_t> begin,
                            bool newest) {
  const uint64_t size = coordinator.log().size();
  const Walk walk{.count = size, .down = newest};
  uint64_t first = walk.First();
  if (begin) first = newest ? walk.Clamp(*begin + 1) : *begin;
  return [&coordinator, walk, first](std::optional<uint64_t> from,
                                     size_t limit) -> absl::StatusOr<RowsFrom<EntryRow>> {
    const uint64_t place = walk.Clamp(from.value_or(first));
    RowsFrom<EntryRow> page;
    if (walk.AtEnd(place)) return page;
    const uint64_t count = std::min<uint64_t>(limit, walk.down ? place : walk.count - place);
    const uint64_t lowest = walk.down ? place - count : place;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator.ReadStore());
    LOCKSTEP_ASSIGN_OR_RETURN(page.rows, view->Entries({}, lowest, static_cast<int64_t>(count)));
    const uint64_t next = walk.down ? lowest : place + count;
    if (walk.down) std::reverse(page.rows.begin(), page.rows.end());
    if (!walk.AtEnd(next)) page.next = next;
    return page;
  };
}

}  // namespace lockstep::coordinator
