// SPDX-License-Identifier: Apache-2.0
//
// A lease replayed: step after step through the engine, each attested into the outbox as soon as it
// is finished. Talks to no coordinator.
#ifndef LOCKSTEP_WORKER_REPLAY_LEASE_H_
#define LOCKSTEP_WORKER_REPLAY_LEASE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "audit/verdict.h"
#include "base/clock.h"
#include "base/ed25519.h"
#include "engine/backend/backend.h"
#include "engine/memory_plan.h"
#include "net/artifact_cache.h"
#include "net/http_client.h"
#include "worker/attester.h"
#include "worker/lease.h"
#include "worker/outbox.h"
#include "worker/work_folder.h"

namespace lockstep::worker {

// What a replay works with; all of it outlives the call.
struct ReplaySetting {
  engine::Backend& backend;
  const WorkFolder& folder;
  net::ArtifactCache& cache;
  net::HttpClient& client;
  Outbox& outbox;
  const Ed25519PrivateKey& key;
  const Witness& witness;
  std::string origin;                // of the log that the lease is from
  std::vector<std::string> mirrors;  // of artifacts, besides the lease's own
  engine::MemoryChoices memory;
  absl::Duration checkpoint_every;  // between states saved here
  bool keep_last = false;           // save the state at the end, too
  const Clock* clock = &RealClock();
};

struct ReplayLeaseHooks {
  std::function<bool()> interrupted;
  // A step was finished and, if it is the lease's, attested; `next` comes now.
  std::function<void(uint64_t next)> stepped;
};

struct LeaseReport {
  audit::Verdict verdict = audit::Verdict::kInconclusive;
  uint64_t attested = 0;   // steps, by this call
  uint64_t next_step = 0;  // that would come now
  absl::Status reason;     // of an inconclusive one; Cancelled: interrupted
  std::optional<audit::Difference> difference;
  std::string kept_state;  // folder of the state at the lease's end, whole; empty: none was kept
};

// Begins where an earlier call for this lease ended, as the outbox and the folder have it. A match
// means that all steps to the end agree. A step before the lease's first that differs, or a start
// that is not the state of the published chain, is no step to attest: inconclusive, and the reason
// says which.
//
// A state that was saved here and does not load is dropped, and the replay begins at the lease's
// own.
LeaseReport ReplayLease(const ReplaySetting& setting, const WorkLease& lease,
                        const ReplayLeaseHooks& hooks);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_REPLAY_LEASE_H_
