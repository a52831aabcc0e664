// SPDX-License-Identifier: Apache-2.0
//
// See leases.h.

#include "coordinator/views/leases.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "coordinator/views/keys.h"
#include "coordinator/views/runs.h"

namespace lockstep::coordinator {
namespace {

// Leases that a page looks at.
constexpr size_t kScannedMax = 4'096;
constexpr size_t kReadAtOnce = 256;
// At first of each run, where there are several: most have nothing to do with a page.
constexpr size_t kReadOfEach = 16;

// Whose leases, of which runs. `nothing`: there is no such key.
struct Wanted {
  std::vector<Digest> runs;
  std::optional<absl::flat_hash_set<Digest>> keys;  // without: everybody's
  bool nothing = false;

  bool HasKey(const Digest& key) const { return !keys || keys->contains(key); }
};

absl::StatusOr<Wanted> WantedBy(const Coordinator& coordinator, const LeaseFilter& filter) {
  absl::Status status;
  Wanted wanted;
  coordinator.Read([&](const audit::Ledger& ledger) {
    if (!filter.run) {
      for (const audit::RunLedger& run : ledger.runs()) wanted.runs.push_back(run.run_id());
    } else if (ledger.FindRun(*filter.run) == nullptr) {
      status = RunUnknown();
    } else {
      wanted.runs.push_back(*filter.run);
    }
    const auto& keys = ledger.keys().keys();
    const auto find = [&](const Digest& key) {
      return ledger.keys().FindById(Ed25519PublicKey{key.bytes}.Id());
    };
    uint32_t operator_id = audit::kNoId;
    if (filter.operator_key) {
      const uint32_t id = find(*filter.operator_key);
      if (id != audit::kNoId) operator_id = keys[id].operator_id;
      wanted.nothing = operator_id == audit::kNoId;
    }
    if (filter.worker_key) {
      const uint32_t id = find(*filter.worker_key);
      if (id == audit::kNoId || keys[id].role != audit::KeyRole::kWorker ||
          (filter.operator_key && keys[id].operator_id != operator_id)) {
        wanted.nothing = true;
      }
      wanted.keys.emplace({*filter.worker_key});
    } else if (filter.operator_key && !wanted.nothing) {
      wanted.keys.emplace();
      for (const audit::KeyFacts& key : keys) {
        if (key.operator_id == operator_id) wanted.keys->insert(Digest{key.key.bytes});
      }
    }
  });
  LOCKSTEP_RETURN_IF_ERROR(status);
  return wanted;
}

// Leases of some runs that have ended, the last one first, one by one.
class EndedLeases {
 public:
  EndedLeases(StoreView& view, const std::vector<Digest>& runs, const LeasePlace& after,
              size_t read_first)
      : view_(view) {
    for (const Digest& run : runs) of_runs_.push_back({run, after, read_first, {}});
  }

  // nullopt at the end.
  absl::StatusOr<std::optional<LeaseRow>> Next() {
    OfRun* next = nullptr;
    for (OfRun& run : of_runs_) {
      if (run.rows.empty() && run.read > 0) LOCKSTEP_RETURN_IF_ERROR(Fill(run));
      if (run.rows.empty()) continue;
      if (next == nullptr || Before(run.rows.front(), next->rows.front())) next = &run;
    }
    if (next == nullptr) return std::nullopt;
    LeaseRow row = std::move(next->rows.front());
    next->rows.pop_front();
    return row;
  }

 private:
  struct OfRun {
    Digest run;
    LeasePlace after;
    size_t read = 0;  // with the next look; 0: there are no more
    std::deque<LeaseRow> rows;
  };

  static bool Before(const LeaseRow& a, const LeaseRow& b) {
    if (a.ended_unix_ms != b.ended_unix_ms) return a.ended_unix_ms > b.ended_unix_ms;
    return a.lease_id < b.lease_id;
  }
  absl::Status Fill(OfRun& run) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<LeaseRow> rows,
                              view_.EndedLeases(run.run, run.after.ended_ms, run.after.lease_id,
                                                static_cast<int64_t>(run.read)));
    run.read = rows.size() < run.read ? 0 : kReadAtOnce;
    if (rows.empty()) return absl::OkStatus();
    run.after = {rows.back().ended_unix_ms, rows.back().lease_id};
    std::move(rows.begin(), rows.end(), std::back_inserter(run.rows));
    return absl::OkStatus();
  }

  StoreView& view_;
  std::vector<OfRun> of_runs_;
};

// Rows for a page, and where the next one begins.
struct Rows {
  std::vector<LeaseRow> rows;
  std::optional<LeasePlace> next;
};

absl::StatusOr<Rows> ReadEnded(StoreView& view, const Wanted& wanted,
                               const std::vector<LeaseState>& states,
                               const std::optional<LeasePlace>& after, size_t limit) {
  const auto fits = [&](const LeaseRow& row) {
    return wanted.HasKey(row.key) &&
           (states.empty() || std::find(states.begin(), states.end(), row.state) != states.end());
  };
  const bool all = states.empty() && !wanted.keys;
  const size_t read_first = wanted.runs.size() > 1 ? kReadOfEach : all ? limit + 1 : kReadAtOnce;
  EndedLeases leases(view, wanted.runs,
                     after.value_or(LeasePlace{std::numeric_limits<int64_t>::max(), ""}),
                     read_first);
  Rows found;
  LeasePlace last;
  for (size_t scanned = 0;; ++scanned) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<LeaseRow> row, leases.Next());
    if (!row) return found;
    if (found.rows.size() == limit || scanned == kScannedMax) {
      found.next = last;
      return found;
    }
    last = {row->ended_unix_ms, row->lease_id};
    if (fits(*row)) found.rows.push_back(*std::move(row));
  }
}

absl::StatusOr<Rows> ReadLive(StoreView& view, const Wanted& wanted, const LeaseFilter& filter,
                              const std::optional<LeasePlace>& after, size_t limit) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<LeaseRow> live, view.LiveLeases());
  Rows found;
  for (LeaseRow& row : live) {
    if ((filter.run && row.run != *filter.run) || !wanted.HasKey(row.key)) continue;
    if (after && row.lease_id <= after->lease_id) continue;
    if (found.rows.size() == limit) {
      found.next = {0, found.rows.back().lease_id};
      break;
    }
    found.rows.push_back(std::move(row));
  }
  return found;
}

LeaseSummary Summarize(const audit::Ledger& ledger, const Tallies& tallies, LeaseRow row) {
  LeaseSummary made{.run = row.run,
                    .first_step = row.first_step,
                    .end_step = row.end_step,
                    .state = row.state,
                    .worker_key = Ed25519PublicKey{row.key.bytes},
                    .operator_key = Ed25519PublicKey{row.operator_key.bytes},
                    .operator_name = {},
                    .hardware = {},
                    .backends = {},
                    .granted_ms = row.granted_unix_ms,
                    .ended_ms = row.ended_unix_ms,
                    .detail = std::move(row.detail)};
  const uint32_t key_id = ledger.keys().FindById(made.worker_key.Id());
  if (key_id == audit::kNoId) return made;
  WorkerSummary worker = SummarizeWorker(ledger, tallies, key_id);
  made.operator_key = worker.operator_key;
  made.operator_name = std::move(worker.operator_name);
  made.hardware = std::move(worker.hardware);
  made.backends = std::move(worker.standing.backends);
  return made;
}

}  // namespace

absl::string_view LeaseStateName(LeaseState state) {
  return kLeaseStates[static_cast<size_t>(state)];
}

std::string LeasePlace::ToText() const { return absl::StrCat(ended_ms, "-", lease_id); }

std::optional<LeasePlace> LeasePlace::Parse(absl::string_view text) {
  const size_t dash = text.find('-');
  LeasePlace place;
  if (dash == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, dash), &place.ended_ms)) {
    return std::nullopt;
  }
  place.lease_id = std::string(text.substr(dash + 1));
  return place;
}

absl::StatusOr<LeasePage> ReadLeases(const Coordinator& coordinator, const LeaseFilter& filter,
                                     const std::optional<LeasePlace>& after, size_t limit) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Wanted wanted, WantedBy(coordinator, filter));
  LeasePage page;
  if (wanted.nothing) return page;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator.ReadStore());
  const bool live = filter.states == std::vector<LeaseState>{LeaseState::kLive};
  LOCKSTEP_ASSIGN_OR_RETURN(Rows rows, live
                                           ? ReadLive(*view, wanted, filter, after, limit)
                                           : ReadEnded(*view, wanted, filter.states, after, limit));
  page.next = std::move(rows.next);
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    for (LeaseRow& row : rows.rows) {
      page.leases.push_back(Summarize(ledger, tallies, std::move(row)));
    }
  });
  return page;
}

}  // namespace lockstep::coordinator
