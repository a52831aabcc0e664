// SPDX-License-Identifier: Apache-2.0
//
// Store against log. See recovery.h.

#include "coordinator/group_commit/recovery.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

absl::Status RefuseOldBackups(uint64_t stored, uint64_t known, uint64_t logged) {
  if (stored < logged) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the log has ", logged, " entries and the store only ", stored,
        ": the store is an old backup. Entries that were acknowledged would be lost; restore a"
        " backup that is as new as the log, together with it"));
  }
  if (logged < known) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the log has ", logged, " entries, but had ", known,
        " when the store was last written: the log is an old backup. Restore a newer one"));
  }
  return absl::OkStatus();
}

// The first entries of the store against the log's root.
absl::Status CompareEntries(StoreView& view, const LogWriter& log) {
  MerkleFrontier frontier;
  LOCKSTEP_RETURN_IF_ERROR(
      view.ForEachLeafHash([&](uint64_t log_index, const Digest& leaf_hash) -> absl::Status {
        if (frontier.size() < log.size()) {
          if (log_index != frontier.size()) {
            return absl::DataLossError(
                absl::StrCat("the store has no entry ", frontier.size(), " of the log"));
          }
          frontier.Append(leaf_hash);
        }
        return absl::OkStatus();
      }));
  if (frontier.Root() == log.Root()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the first ", log.size(), " entries of the store have root ", frontier.Root().ToHex(),
      ", those of the log ", log.Root().ToHex(), ": they are not of the same coordinator"));
}

}  // namespace

absl::Status RecoverLog(Store& store, LogWriter& log) {
  constexpr size_t kAtOnce = 64;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, store.Read());
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t stored, view->EntryCount());
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t known, view->LogSize());
  LOCKSTEP_RETURN_IF_ERROR(RefuseOldBackups(stored, known, log.size()));
  LOCKSTEP_RETURN_IF_ERROR(CompareEntries(*view, log));
  if (stored == log.size()) return absl::OkStatus();

  LOCKSTEP_LOG_INFO("appending entries {} to {} to the log, which a crash kept from it", log.size(),
                    stored - 1);
  std::vector<std::string> envelopes;
  LOCKSTEP_RETURN_IF_ERROR(
      view->ForEachEntry(log.size(), [&](const EntryRow& entry) -> absl::Status {
        envelopes.push_back(entry.envelope);
        if (envelopes.size() < kAtOnce) return absl::OkStatus();
        LOCKSTEP_RETURN_IF_ERROR(log.Append(envelopes));
        envelopes.clear();
        return absl::OkStatus();
      }));
  return envelopes.empty() ? absl::OkStatus() : log.Append(envelopes);
}

}  // namespace lockstep::coordinator
