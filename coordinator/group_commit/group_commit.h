// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's one writer: a thread that takes requests from all others and puts up to
// rows_max rows of them, or what came within delay_max, into one transaction of the store; and a
// second thread that appends the entries they made to the log, and answers each, while the first is
// at the next batch. A request that fails is undone alone. Order, within a batch and between
// batches:
//
//   store transaction (its entries have their log index) -> log (log/log_writer.h) -> answers
//
// so what was answered is on the disk in both, and after a crash the store has at most entries that
// the log has not (three batches of them), which RecoverLog (recovery.h) appends before anything
// else is written.
//
// Requests of one source run in the order in which they came; sources take turns, so nobody waits
// for another's backlog, only for one request of each source.

#ifndef LOCKSTEP_COORDINATOR_GROUP_COMMIT_GROUP_COMMIT_H_
#define LOCKSTEP_COORDINATOR_GROUP_COMMIT_GROUP_COMMIT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/log/log_writer.h"
#include "coordinator/store/service_time.h"
#include "coordinator/store/store.h"

namespace lockstep::coordinator {

// What a request's work has while it runs: on the writer's thread, after all work before it, seeing
// what that wrote.
class WriteContext {
 public:
  explicit WriteContext(StoreTransaction& transaction) : transaction_(transaction) {}

  StoreTransaction& transaction() { return transaction_; }
  StoreView& view() { return transaction_.view(); }

  // Appends to the log, and to the store's entries; the log index. As StoreTransaction's.
  absl::StatusOr<uint64_t> AppendEntry(const EntryRow& entry);

  // Runs on the log's thread when all is on the disk, in order and before any answer of the batch:
  // for what others may see from then on. Not if the work fails or the writer stops.
  void OnCommitted(std::function<void()> committed) { committed_.push_back(std::move(committed)); }

 private:
  friend class GroupCommit;

  StoreTransaction& transaction_;
  std::vector<std::string> envelopes_;
  std::vector<std::function<void()>> committed_;
};

struct WriteRequest {
  // Who asks, for the turns: such as the hash of a key or of a peer's address.
  uint64_t source = 0;
  // About how many rows `work` writes, at least 1.
  int64_t rows = 1;
  // OK: everything it wrote is to be kept. Otherwise nothing of it, and this is the answer. It must
  // not block, throw, or ask for a write.
  std::function<absl::Status(WriteContext& context)> work;
  // Gets the answer, on a thread of the writer's, or within Submit if the request is refused at
  // once.
  // OK: on the disk. Unavailable: perhaps on the disk, perhaps not; the same request may come
  // again. ResourceExhausted, from here: too many wait. It must not block.
  std::function<void(absl::Status answer)> done;
};

struct GroupCommitOptions {
  int64_t rows_max = 64;
  std::chrono::milliseconds delay_max{5};
  int64_t rows_queued_max = 65'536;
  // Called once, on a thread of the writer's, when it stops by an error: say NOT_SERVING, and end
  // the process. No batch is begun after it.
  std::function<void(const absl::Status& error)> on_failure = [](const absl::Status&) {};
};

class GroupCommit {
 public:
  // Brings the log up to the store (RecoverLog) and starts the threads. All arguments outlive this,
  // and nobody else writes to them.
  static absl::StatusOr<std::unique_ptr<GroupCommit>> Start(Store& store, LogWriter& log,
                                                            const ServiceTime& time,
                                                            GroupCommitOptions options);
  // Stop().
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  // From any thread; does not wait for the write.
  void Submit(WriteRequest request);

  // Submit, and waits for the answer. Not on the writer's threads.
  absl::Status Write(uint64_t source, int64_t rows,
                     std::function<absl::Status(WriteContext& context)> work);

  // Writes what was submitted, refuses what comes, and ends the threads. From one thread.
  void Stop();

  // OK, or what stopped the writer.
  absl::Status status() const;
  // Rows that wait to be taken.
  int64_t RowsQueued() const;

 private:
  using Batch = std::vector<WriteRequest>;

  // A batch that is in the store, and has yet to be appended to the log and answered.
  struct Stored {
    Batch batch;
    std::vector<absl::Status> answers;
    std::vector<std::string> envelopes;
    std::vector<std::function<void()>> committed;
  };

  GroupCommit(Store& store, LogWriter& log, const ServiceTime& time, GroupCommitOptions options);

  // The writer's thread, and the log's.
  void Run();
  void RunLog();
  // What to write next, waiting for it; empty when there is nothing more to come.
  Batch NextBatch();
  Batch TakeLocked();
  // nullopt: the batch was refused, and is answered. An error stops the writer.
  absl::StatusOr<std::optional<Stored>> StoreBatch(Batch& batch);
  // To the log's thread, once that has taken the one before.
  void HandOver(std::optional<Stored> stored);
  absl::Status AppendAndAnswer(Stored& stored);
  // The first error is what everybody is told.
  void Fail(const absl::Status& error);
  void AnswerAll(const Batch& batch, const absl::Status& answer);

  Store& store_;
  LogWriter& log_;
  const ServiceTime& time_;
  const GroupCommitOptions options_;

  // std's, whose waits are by the monotonic clock: Abseil's of Debian 12 are by the time of day,
  // and would wait a day if that is set back by one.
  mutable std::mutex mutex_;
  std::condition_variable changed_;      // for the writer's thread
  std::condition_variable handed_over_;  // between the two
  // Under mutex_. Requests by source; the sources that have some, next one first; and since when
  // there is something to take.
  absl::flat_hash_map<uint64_t, std::deque<WriteRequest>> queues_;
  std::deque<uint64_t> turns_;
  int64_t rows_queued_ = 0;
  std::chrono::steady_clock::time_point waiting_since_;
  bool stopping_ = false;
  absl::Status failure_;
  std::optional<Stored> stored_;  // on its way to the log's thread
  bool no_more_ = false;          // and none comes after it

  std::thread thread_;
  std::thread log_thread_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_GROUP_COMMIT_GROUP_COMMIT_H_
