// SPDX-License-Identifier: Apache-2.0
//
// The daemon: asks coordinators for work, replays it, and stays a guest. What happens in it, one
// lease at a time, is one thread's; status and commands may come from any.
//
// DATA/lock              one daemon at a time (flock)
// DATA/keys/             keys.h
// DATA/outbox/           outbox.h
// DATA/attempt           attempt.h
// DATA/leases/<log>      the lease at hand, so that a kill does not lose it
// CACHE/artifacts/       net/artifact_cache.h
// CACHE/runs/            work_folder.h
#ifndef LOCKSTEP_WORKER_DAEMON_H_
#define LOCKSTEP_WORKER_DAEMON_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/directory_lock.h"
#include "base/ed25519.h"
#include "engine/backend/backend.h"
#include "net/artifact_cache.h"
#include "net/http_client.h"
#include "nlohmann/json.hpp"
#include "worker/attester.h"
#include "worker/backoff.h"
#include "worker/config.h"
#include "worker/coordinator.h"
#include "worker/courier.h"
#include "worker/guest_rules.h"
#include "worker/keys.h"
#include "worker/lease.h"
#include "worker/outbox.h"
#include "worker/replay_lease.h"
#include "worker/system_probe.h"

namespace lockstep::worker {

// As many leases in a row without a verdict, and the worker waits for its owner.
inline constexpr int kFailuresMax = 5;

struct DaemonOptions {
  WorkerConfig config;
  bool once = false;  // end after a lease
  // A coordinator by its address, with the attempt's id and the question whether to give up.
  using Connect = std::function<absl::StatusOr<std::unique_ptr<Coordinator>>(
      const std::string& address, const Ed25519PrivateKey& key, const std::string& attempt,
      std::function<bool()> interrupted)>;
  Connect connect;
  std::unique_ptr<SystemProbe> probe;
  std::function<double()> random;          // uniform in [0, 1), from any thread
  absl::Duration tick = absl::Seconds(1);  // how often the guest's rules are looked at
  // How long a finished lease waits for its coordinator to come back before others are asked.
  absl::Duration patience = absl::Minutes(1);
  const Clock* clock = &RealClock();
  Backoff::Options backoff = {.first = absl::Seconds(5), .most = absl::Minutes(10)};
};

class Daemon {
 public:
  // Takes the lock, reads keys and outbox, chooses the instruction set. FailedPrecondition if
  // another daemon has the folder; InvalidArgument for a configuration without a coordinator.
  static absl::StatusOr<std::unique_ptr<Daemon>> Create(DaemonOptions options);

  // Until Stop: OK; or with `once` until a lease has ended: what kept it from a verdict, or its
  // attestations from the log.
  absl::Status Run();

  // From any thread. Stop: the state of the last finished step is saved, what is signed is sent if
  // that goes at once, and the lease is given back.
  void Stop() { stop_ = true; }
  void Pause();
  // Also after failures in a row; and coordinators are asked at once.
  void Resume();

  nlohmann::json Status() const;
  // In a record that the trainer has signed.
  bool found_mismatch() const { return mismatches_ > 0; }
  // How long ago the working thread last showed a sign of life: for a watchdog.
  absl::Duration SinceAlive() const;

 private:
  struct Site {
    std::string address;
    std::unique_ptr<Coordinator> coordinator;
    std::optional<ServerInfo> server;
    std::optional<Backoff> backoff;
    absl::Duration due;  // monotonic
    bool keys_told = false;
    std::string last_error;
    std::string advice;   // on it, for the machine's owner
    std::string no_work;  // why there was none, in the coordinator's word
  };
  struct LeaseStatus {
    std::string origin;
    Digest run_id;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t next = 0;
  };

  explicit Daemon(DaemonOptions options);
  absl::Status Open();
  absl::Duration Now() const { return options_.clock->Monotonic(); }
  Site* DueSite();
  void SetDue(Site& site, absl::Duration wait);
  void Visit(Site& site);
  absl::Status Approach(Site& site);
  absl::Status TellKeys(Site& site);
  absl::StatusOr<std::optional<v1::Lease>> TakeUp(Site& site);
  absl::StatusOr<std::optional<v1::Lease>> Acquire(Site& site);
  absl::Status RunLease(Site& site, const v1::Lease& lease);
  LeaseReport Replay(Site& site, const WorkLease& lease, Courier& courier);
  absl::StatusOr<engine::MemoryChoices> PlanMemory(const WorkLease& lease) const;
  void Release(Site& site, const std::string& lease_id, v1::ReleaseLeaseRequest::Reason reason,
               const std::string& detail);
  void Count(const LeaseReport& report, const WorkLease& lease, absl::Duration took);
  void Offer(Site& site, uint64_t step, const std::string& state);

  std::string LeasePath(const std::string& origin) const;
  // Why not to work now; empty: work.
  std::string PausedBecause();
  // The same without a look at the machine.
  std::string WhyPaused() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Blocks while paused; true: give the lease up.
  bool Interrupted(const std::function<bool()>& lost);
  void Wait(absl::Duration duration);
  void Alive();

  DaemonOptions options_;
  std::optional<DirectoryLock> lock_;
  std::optional<Ed25519PrivateKey> key_;
  std::vector<std::string> key_entries_;
  std::string attempt_;
  Witness witness_;
  std::unique_ptr<engine::Backend> backend_;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<net::ArtifactCache> cache_;
  std::unique_ptr<net::HttpClient> client_;
  std::function<bool()> lease_lost_;  // of the lease at hand; the working thread's
  std::vector<Site> sites_;

  std::atomic<bool> stop_{false};
  std::atomic<bool> user_paused_{false};
  std::atomic<bool> given_up_{false};  // the pause was too long for the lease
  std::atomic<int> failures_{0};       // in a row
  std::atomic<int64_t> alive_ns_{0};
  std::atomic<uint64_t> matches_{0};  // leases
  std::atomic<uint64_t> mismatches_{0};
  std::atomic<uint64_t> tests_{0};     // leases that ended in a record made up by the coordinator
  std::atomic<uint64_t> attested_{0};  // steps
  int leases_ended_ = 0;
  absl::Status last_visit_;
  std::atomic<double> tokens_per_second_{0};

  mutable absl::Mutex mutex_;
  GuestDecision guest_ ABSL_GUARDED_BY(mutex_);
  absl::Duration guest_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  std::optional<LeaseStatus> lease_ ABSL_GUARDED_BY(mutex_);
  std::string doing_ ABSL_GUARDED_BY(mutex_) = "starting";
  std::string last_failure_ ABSL_GUARDED_BY(mutex_);
  std::string delivery_error_ ABSL_GUARDED_BY(mutex_);  // of the last try
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DAEMON_H_
