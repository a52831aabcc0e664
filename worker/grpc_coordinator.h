// SPDX-License-Identifier: Apache-2.0
//
// A coordinator over gRPC: signed requests, deadlines, tries, and the coordinator's time.
#ifndef LOCKSTEP_WORKER_GRPC_COORDINATOR_H_
#define LOCKSTEP_WORKER_GRPC_COORDINATOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ed25519.h"
#include "worker/backoff.h"
#include "worker/coordinator.h"

namespace lockstep::worker {

struct GrpcCoordinatorOptions {
  // "https://host:port", or "http://host:port" of this machine only.
  std::string address;
  std::string ca_file = {};                     // certificates to trust, PEM; empty: the system's
  std::string attempt_id;                       // 16 bytes
  int tries_max = 5;                            // of a call that is UNAVAILABLE
  absl::Duration deadline = absl::Seconds(20);  // of each try
  Backoff::Options backoff = {};
  std::function<bool()> interrupted = nullptr;  // asked between tries and while waiting
  // For tests. Each must be safe from any thread.
  const Clock* clock = &RealClock();
  std::function<void(absl::Duration)> sleep = nullptr;  // empty: really
  std::function<double()> random = nullptr;             // uniform in [0, 1); empty: by chance
};

// Makes no connection yet. `key` outlives it. InvalidArgument for an address that cannot be, and
// for plain http to another machine.
//
// Tries: UNAVAILABLE, and nothing else, is tried again with the very same request, so that a lost
// answer is got again and nothing happens twice. CLOCK_SKEW is answered once by taking over the
// coordinator's time. A deadline that passes is Unavailable to the caller, without another try.
//
// Time in requests is the coordinator's last word plus what has passed since by the monotonic
// clock: setting this machine's clock does not matter.
absl::StatusOr<std::unique_ptr<Coordinator>> ConnectGrpc(const Ed25519PrivateKey& key,
                                                         const GrpcCoordinatorOptions& options);

// 16 random bytes of the system.
absl::StatusOr<std::string> RandomId();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_GRPC_COORDINATOR_H_
