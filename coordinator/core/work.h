// SPDX-License-Identifier: Apache-2.0
//
// Private to the coordinator's sources: a request while it is on the writer's thread, and a lease
// that is out.

#ifndef LOCKSTEP_COORDINATOR_CORE_WORK_H_
#define LOCKSTEP_COORDINATOR_CORE_WORK_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/core/coordinator.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {

struct Coordinator::Work {
  WriteContext& context;
  const int64_t now_ms;  // service time
  // What was written is kept, though the answer is an error: evidence of what was refused.
  bool keep = false;
  // The ledger was told: from here on nothing may be undone.
  bool applied = false;
  // What is in memory beside the store (leases, the work table, doubts) was changed: it is kept on
  // both sides whatever is refused after it, and an error that is no refusal is as after `applied`.
  // Set by whoever changes it, before.
  bool changed = false;

  StoreTransaction& store() { return context.transaction(); }
  StoreView& view() { return context.view(); }
};

struct Coordinator::LiveLease {
  LeaseRow row;
  int64_t lease_ms = 0;  // it lives so long after each heartbeat
  Auditor auditor;
  std::string backend;         // class; empty where it is not known any more
  std::vector<bool> attested;  // by step, from row.first_step
  bool contributed = false;    // an attestation of it was taken

  bool Finished() const {
    return std::all_of(attested.begin(), attested.end(), [](bool done) { return done; });
  }
};

template <typename T>
absl::StatusOr<T> Coordinator::Write(uint64_t source, int64_t rows,
                                     absl::FunctionRef<absl::StatusOr<T>(Work& work)> body) {
  if (diverged_) return absl::UnavailableError("the coordinator is about to end; try again later");
  absl::StatusOr<T> result = absl::UnavailableError("not written");
  const absl::Status written = writer_->Write(source, rows, [&](WriteContext& context) {
    if (diverged_) return absl::UnavailableError("the coordinator is about to end");
    Work work{.context = context, .now_ms = time_->NowMs()};
    result = body(work);
    if (result.ok() || work.keep) return absl::OkStatus();
    const bool refused = !rpc::ReasonOf(result.status()).empty();
    if (refused && work.changed && !work.applied) return absl::OkStatus();
    if (work.applied || work.changed) {
      // What memory has is being undone in the store: only a new start can mend that.
      diverged_ = true;
      LOCKSTEP_LOG_ERROR("a request failed after it was taken: {}", result.status());
      options_.on_failure(result.status());
    }
    return result.status();
  });
  if (!written.ok()) return written;
  return result;
}

template <typename Change>
absl::Status Coordinator::ChangeTrust(Work& work, const Ed25519PublicKey& key,
                                      const Change& change) {
  const Digest name = TrustNameOf(key);
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyTrust trust, work.view().Trust(name));
  return work.store().PutTrust(name, change(trust));
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_WORK_H_
