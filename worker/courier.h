// SPDX-License-Identifier: Apache-2.0
//
// What goes on beside a replay: heartbeats that keep the lease, and the outbox on its way. A thread
// of its own, so that neither waits for the other.
#ifndef LOCKSTEP_WORKER_COURIER_H_
#define LOCKSTEP_WORKER_COURIER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ed25519.h"
#include "worker/backoff.h"
#include "worker/coordinator.h"
#include "worker/outbox.h"

namespace lockstep::worker {

struct CourierOptions {
  std::string lease_id;
  absl::Duration heartbeat;  // at least this often: it is sent three times as often
  Backoff::Options backoff = {.first = absl::Seconds(1), .most = absl::Minutes(1)};
  std::function<double()> random;
  std::function<bool()> stop;  // the daemon is to end: nothing more is waited for
  // What a delivery came to; on the courier's thread.
  std::function<void(const absl::Status& status)> delivered = nullptr;
  // How long Finish() waits for a coordinator that is away.
  absl::Duration patience = absl::InfiniteDuration();
  const Clock* clock = &RealClock();
};

class Courier {
 public:
  // All outlive it. The first heartbeat goes out at once; a long delivery is broken off for the
  // next.
  Courier(Coordinator& coordinator, const ServerInfo& server, Outbox& outbox,
          const Ed25519PrivateKey& key, uint64_t next_step, const CourierOptions& options);
  // Ends the thread, after the call it is in.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  // The replay has come to this step; there may be something to send.
  void SetNextStep(uint64_t step);

  // Why the lease is no longer to be worked on; empty: it is. Expired, foreign, withdrawn, settled.
  std::string lost() const;
  // Lost, and yet ours to give back: the coordinator has no use for it any more.
  bool dismissed() const;

  // No more comes. Waits until all for this log is sent or put away, with the lease kept meanwhile.
  // Before that: Cancelled if it was told to stop; what the last delivery came to, if it was
  // anything but Unavailable (the disk, an answer that is not what it must be), or after
  // `patience`.
  absl::Status Finish();

 private:
  void Work();
  void Heartbeat();
  void Send(absl::Duration until);

  Coordinator& coordinator_;
  const ServerInfo& server_;
  Outbox& outbox_;
  const Ed25519PrivateKey& key_;
  const CourierOptions options_;
  Backoff backoff_;

  mutable absl::Mutex mutex_;
  uint64_t next_step_ ABSL_GUARDED_BY(mutex_);
  bool to_send_ ABSL_GUARDED_BY(mutex_) = true;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status outcome_ ABSL_GUARDED_BY(mutex_);                      // of Finish
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);                      // of the last delivery
  std::optional<absl::Duration> give_up_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  std::string lost_ ABSL_GUARDED_BY(mutex_);
  bool dismissed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration send_at_ ABSL_GUARDED_BY(mutex_);  // monotonic: not before
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COURIER_H_
