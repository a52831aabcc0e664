// SPDX-License-Identifier: Apache-2.0
//
// Operators and workers. See lists.h.

#include <algorithm>
#include <memory>
#include <utility>

#include "audit/evidence/log_entry.h"
#include "base/status.h"
#include "coordinator/api/lists.h"
#include "coordinator/core/reasons.h"

namespace lockstep::coordinator {
namespace {

absl::Status KeyUnknown(absl::string_view what) {
  return Refused(absl::StatusCode::kNotFound, "KEY_UNKNOWN",
                 absl::StrCat("no ", what, " is registered with this key"));
}

// In the words of who revoked an operator; nullopt if it was not, or is not on the disk yet.
absl::StatusOr<std::optional<std::string>> RevokedReason(StoreView& view,
                                                         const OperatorSummary& who) {
  if (who.until == audit::kNeverEnded) return std::nullopt;
  const absl::StatusOr<EntryRow> row = view.Entry(who.until);
  if (absl::IsNotFound(row.status())) return std::nullopt;
  LOCKSTEP_RETURN_IF_ERROR(row.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry entry, audit::LogEntry::Parse(row->envelope));
  const auto* const event = std::get_if<audit::KeyEvent>(&entry.payload());
  const auto* const revoke = event == nullptr ? nullptr : std::get_if<audit::RevokeEvent>(event);
  if (revoke == nullptr) return std::nullopt;
  return revoke->reason;
}

absl::StatusOr<std::vector<OperatorRow>> WithReasons(const Coordinator& coordinator,
                                                     std::vector<OperatorSummary> summaries) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator.ReadStore());
  std::vector<OperatorRow> rows;
  for (OperatorSummary& summary : summaries) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> reason, RevokedReason(*view, summary));
    rows.push_back({.summary = std::move(summary), .revoked_reason = std::move(reason)});
  }
  return rows;
}

absl::StatusOr<std::vector<WorkerRow>> WithTrust(const Coordinator& coordinator,
                                                 std::vector<WorkerSummary> summaries) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator.ReadStore());
  std::vector<WorkerRow> rows;
  for (WorkerSummary& summary : summaries) {
    LOCKSTEP_ASSIGN_OR_RETURN(const KeyTrust trust, view->Trust(KeyText(summary.key)));
    rows.push_back({.summary = std::move(summary), .trust = trust});
  }
  return rows;
}

uint32_t FindKey(const audit::Ledger& ledger, const Digest& key) {
  return ledger.keys().FindById(Ed25519PublicKey{key.bytes}.Id());
}

}  // namespace

Source<OperatorRow> Operators(const Coordinator& coordinator) {
  uint32_t count = 0;
  coordinator.Read([&](const audit::Ledger& ledger) {
    count = static_cast<uint32_t>(ledger.keys().operators().size());
  });
  return [&coordinator, count](std::optional<uint64_t> place,
                               size_t limit) -> absl::StatusOr<RowsFrom<OperatorRow>> {
    const uint64_t begin = std::min<uint64_t>(place.value_or(0), count);
    const uint64_t end = std::min<uint64_t>(begin + limit, count);
    std::vector<OperatorSummary> summaries;
    coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
      summaries = SummarizeOperators(ledger, tallies, static_cast<uint32_t>(begin),
                                     static_cast<uint32_t>(end));
    });
    RowsFrom<OperatorRow> page;
    LOCKSTEP_ASSIGN_OR_RETURN(page.rows, WithReasons(coordinator, std::move(summaries)));
    if (end < count) page.next = end;
    return page;
  };
}

Source<WorkerRow> Workers(const Coordinator& coordinator) {
  uint32_t count = 0;  // of all keys, of which workers' are shown
  coordinator.Read([&](const audit::Ledger& ledger) {
    count = static_cast<uint32_t>(ledger.keys().keys().size());
  });
  return [&coordinator, count](std::optional<uint64_t> place,
                               size_t limit) -> absl::StatusOr<RowsFrom<WorkerRow>> {
    auto id = static_cast<uint32_t>(std::min<uint64_t>(place.value_or(0), count));
    std::vector<WorkerSummary> summaries;
    coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
      for (; id < count && summaries.size() < limit; ++id) {
        if (ledger.keys().keys()[id].role != audit::KeyRole::kWorker) continue;
        summaries.push_back(SummarizeWorker(ledger, tallies, id));
      }
    });
    RowsFrom<WorkerRow> page;
    LOCKSTEP_ASSIGN_OR_RETURN(page.rows, WithTrust(coordinator, std::move(summaries)));
    if (id < count) page.next = id;
    return page;
  };
}

absl::StatusOr<OperatorRow> FindOperator(const Coordinator& coordinator, const Digest& key) {
  std::vector<OperatorSummary> found;
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    const uint32_t id = FindKey(ledger, key);
    if (id == audit::kNoId || ledger.keys().keys()[id].role != audit::KeyRole::kOperator) return;
    const uint32_t operator_id = ledger.keys().keys()[id].operator_id;
    found = SummarizeOperators(ledger, tallies, operator_id, operator_id + 1);
  });
  if (found.empty()) return KeyUnknown("operator");
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<OperatorRow> rows,
                            WithReasons(coordinator, std::move(found)));
  return std::move(rows.front());
}

absl::StatusOr<WorkerRow> FindWorker(const Coordinator& coordinator, const Digest& key) {
  std::vector<WorkerSummary> found;
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    const uint32_t id = FindKey(ledger, key);
    if (id == audit::kNoId || ledger.keys().keys()[id].role != audit::KeyRole::kWorker) return;
    found.push_back(SummarizeWorker(ledger, tallies, id));
  });
  if (found.empty()) return KeyUnknown("worker");
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<WorkerRow> rows, WithTrust(coordinator, std::move(found)));
  return std::move(rows.front());
}

absl::StatusOr<std::vector<WorkerRow>> WorkersOf(const Coordinator& coordinator,
                                                 uint32_t operator_id) {
  std::vector<WorkerSummary> found;
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    const auto& keys = ledger.keys().keys();
    for (uint32_t id = 0; id < keys.size(); ++id) {
      if (keys[id].role != audit::KeyRole::kWorker || keys[id].operator_id != operator_id) continue;
      found.push_back(SummarizeWorker(ledger, tallies, id));
    }
  });
  return WithTrust(coordinator, std::move(found));
}

}  // namespace lockstep::coordinator
