// SPDX-License-Identifier: Apache-2.0
//
// Tells a coordinator of a run, while it is trained or afterwards: the registration, every step's
// record in order, the states that others may start from, whose files it uploads unless a mirror
// has them, and what those states were found to predict of held-out texts. It looks at the run's
// folder now and then, and the run knows nothing of it: the coordinator may be away for any time.
// What is published already, the coordinator itself says, so a publisher may be killed at any
// moment, and a coordinator may have forgotten.
//
// It never sends a record that contradicts one that the coordinator has: that would be a second
// history, signed by the trainer.
#ifndef LOCKSTEP_TRAINER_PUBLISHER_H_
#define LOCKSTEP_TRAINER_PUBLISHER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "audit/evidence/quorum.h"
#include "base/ed25519.h"
#include "engine/run/run_folder.h"
#include "net/http_client.h"
#include "trainer/coordinator_client.h"
#include "trainer/local_records.h"
#include "trainer/publish_folder.h"

namespace lockstep::trainer {

struct PublisherOptions {
  CoordinatorAddress coordinator;
  audit::Quorum quorum;                         // of the run, if it is registered only now
  std::vector<std::string> mirrors;             // base URLs that have, or will have, every artifact
  absl::Duration deadline = absl::Seconds(30);  // of a call
  // After a failure; twice that each time, up to backoff_max, a random part of it at least half.
  absl::Duration backoff = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Minutes(1);
  absl::Duration poll = absl::Seconds(1);  // between looks at the folder
  // A coordinator is asked at least so often how far it is, in case it has forgotten.
  absl::Duration resynchronize = absl::Minutes(1);
};

struct PublishStatus {
  bool registered = false;
  uint64_t next_step = 0;    // the first whose record the coordinator has not acknowledged
  uint64_t checkpoints = 0;  // announced
  uint64_t evaluations = 0;  // acknowledged since this publisher began
  absl::Status records;      // the last failure of either part; OK when it is at work or done
  absl::Status artifacts;
};

class Publisher {
 public:
  // Starts two threads: records must not wait behind large files. Errors are those of the folder
  // and the configuration; what the coordinator says comes later.
  static absl::StatusOr<std::unique_ptr<Publisher>> Start(const engine::RunFolder& run,
                                                          Ed25519PrivateKey key,
                                                          PublisherOptions options);
  // Stops; what is under way is broken off.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  PublishStatus status() const;

  // Waits until the coordinator has acknowledged all that is in the folder now. Otherwise: the
  // error that nothing can be done about here, as soon as it is known; what kept it from going on
  // for `patience` without a break; Cancelled.
  absl::Status Drain(absl::Duration patience, const std::function<bool()>& interrupted);

 private:
  // One thread's work, told apart by name.
  struct Part {
    const char* name;
    absl::StatusOr<bool> (Publisher::*pass)();  // true: there may be more at once
    uint64_t wakes = 1;                         // changes when there may be something to do
    uint64_t idle_at = 0;                       // what that was when it last found nothing to do
    absl::Status error;                         // of the last pass
    std::optional<absl::Duration> failing_since = std::nullopt;
    bool ended = false;  // by an error that no further try would change
  };

  Publisher(const engine::RunFolder& run, Ed25519PrivateKey key, PublisherOptions options,
            PublishFolder folder, std::unique_ptr<CoordinatorClient> client);
  void Run(Part& part);
  void Rest(const Part& part, uint64_t seen, absl::Duration duration);

  absl::StatusOr<bool> RecordsPass();
  absl::StatusOr<bool> ArtifactsPass();
  absl::Status Register(const std::string& entry);
  absl::StatusOr<std::optional<std::string>> Registration();
  absl::Status CheckLog(const ServerInfo& info);
  absl::Status Synchronize();
  absl::Status SendRecords(uint64_t end);
  void Acknowledge(uint64_t next_step, const Digest& chain);
  void Keep(absl::string_view name, const CoordinatorClient::MaybeReceipt& receipt);
  absl::Status Upload(const std::vector<RunArtifact>& artifacts);
  absl::StatusOr<bool> PublishCheckpoint(uint64_t step, const std::string& folder);
  absl::StatusOr<bool> PublishEvaluation(const std::string& name, uint64_t next_step);
  void Forget();

  const engine::RunFolder run_;
  const Ed25519PrivateKey key_;
  const PublisherOptions options_;
  const std::unique_ptr<CoordinatorClient> client_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<net::HttpClient> http_;

  // The records' thread alone, as the next.
  std::optional<LocalRecords> records_;
  bool synchronized_ = false;
  absl::Duration synchronized_at_ = -absl::InfiniteDuration();
  uint64_t asked_at_ = 0;  // records_part_.wakes then
  bool told_of_fewer_ = false;
  // The artifacts' thread alone.
  std::optional<std::vector<RunArtifact>> inputs_;
  std::set<uint64_t> gone_;                 // states that were removed, or are damaged
  std::set<std::string> evaluations_gone_;  // damaged, or never to be taken

  mutable absl::Mutex mutex_;
  const PublishFolder folder_ ABSL_GUARDED_BY(mutex_);
  std::optional<ServerInfo> server_ ABSL_GUARDED_BY(mutex_);  // once the run is registered there
  PublishProgress progress_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> announced_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> evaluated_ ABSL_GUARDED_BY(mutex_);  // by name
  bool inputs_there_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // how often the coordinator has forgotten
  bool told_of_no_receipt_ ABSL_GUARDED_BY(mutex_) = false;
  Part records_part_;  // under mutex_ but for its first two fields, as the next
  Part artifacts_part_;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::trainer

#endif  // LOCKSTEP_TRAINER_PUBLISHER_H_
