// SPDX-License-Identifier: Apache-2.0
//
// The writer's thread. See group_commit.h.

#include "coordinator/group_commit/group_commit.h"

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/group_commit/recovery.h"

namespace lockstep::coordinator {

absl::StatusOr<uint64_t> WriteContext::AppendEntry(const EntryRow& entry) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t log_index, transaction_.AppendEntry(entry));
  envelopes_.push_back(entry.envelope);
  return log_index;
}

absl::StatusOr<std::unique_ptr<GroupCommit>> GroupCommit::Start(Store& store, LogWriter& log,
                                                                const ServiceTime& time,
                                                                GroupCommitOptions options) {
  LOCKSTEP_RETURN_IF_ERROR(RecoverLog(store, log));
  std::unique_ptr<GroupCommit> writer(new GroupCommit(store, log, time, std::move(options)));
  writer->thread_ = std::thread([w = writer.get()] { w->Run(); });
  return writer;
}

GroupCommit::GroupCommit(Store& store, LogWriter& log, const ServiceTime& time,
                         GroupCommitOptions options)
    : store_(store), log_(log), time_(time), options_(std::move(options)) {}

GroupCommit::~GroupCommit() { Stop(); }

void GroupCommit::Submit(WriteRequest request) {
  request.rows = std::max<int64_t>(request.rows, 1);
  absl::Status refusal;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) {
      refusal = failure_;
    } else if (stopping_) {
      refusal = absl::UnavailableError("the coordinator is shutting down; try again later");
    } else if (rows_queued_ > 0 && rows_queued_ + request.rows > options_.rows_queued_max) {
      refusal = absl::ResourceExhaustedError(
          absl::StrCat(rows_queued_, " rows wait to be written, and no more than ",
                       options_.rows_queued_max, " may; try again later"));
    } else {
      if (rows_queued_ == 0) waiting_since_ = std::chrono::steady_clock::now();
      rows_queued_ += request.rows;
      std::deque<WriteRequest>& queue = queues_[request.source];
      if (queue.empty()) turns_.push_back(request.source);
      queue.push_back(std::move(request));
    }
  }
  if (refusal.ok()) {
    changed_.notify_one();
  } else {
    request.done(std::move(refusal));
  }
}

absl::Status GroupCommit::Write(uint64_t source, int64_t rows,
                                std::function<absl::Status(WriteContext& context)> work) {
  std::promise<absl::Status> answer;
  std::future<absl::Status> future = answer.get_future();
  Submit({.source = source,
          .rows = rows,
          .work = std::move(work),
          .done = [&answer](absl::Status status) { answer.set_value(std::move(status)); }});
  return future.get();
}

void GroupCommit::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status GroupCommit::status() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

int64_t GroupCommit::RowsQueued() const {
  const std::lock_guard lock(mutex_);
  return rows_queued_;
}

void GroupCommit::Run() {
  while (true) {
    Batch batch = NextBatch();
    if (batch.empty()) return;
    if (const absl::Status error = WriteBatch(batch); !error.ok()) {
      Fail(error);
      const absl::Status answer = status();
      for (const WriteRequest& request : batch) request.done(answer);
      for (batch = NextBatch(); !batch.empty(); batch = NextBatch()) {
        for (const WriteRequest& request : batch) request.done(answer);
      }
      return;
    }
  }
}

GroupCommit::Batch GroupCommit::NextBatch() {
  std::unique_lock lock(mutex_);
  // After a failure nothing more comes: what is left is taken to be answered.
  const auto hurry = [this] { return stopping_ || !failure_.ok(); };
  changed_.wait(lock, [&] { return rows_queued_ > 0 || hurry(); });
  changed_.wait_until(lock, waiting_since_ + options_.delay_max,
                      [&] { return rows_queued_ >= options_.rows_max || hurry(); });
  return TakeLocked();
}

GroupCommit::Batch GroupCommit::TakeLocked() {
  Batch batch;
  int64_t rows = 0;
  while (!turns_.empty()) {
    const uint64_t source = turns_.front();
    const auto queue = queues_.find(source);
    WriteRequest& next = queue->second.front();
    if (!batch.empty() && rows + next.rows > options_.rows_max) break;
    rows += next.rows;
    batch.push_back(std::move(next));
    queue->second.pop_front();
    turns_.pop_front();
    if (queue->second.empty()) {
      queues_.erase(queue);
    } else {
      turns_.push_back(source);
    }
  }
  rows_queued_ -= rows;
  // Those left have waited for this batch to fill, and now wait for it to be written: enough.
  return batch;
}

absl::Status GroupCommit::WriteBatch(Batch& batch) {
  absl::StatusOr<std::unique_ptr<StoreTransaction>> begun = store_.Write();
  if (absl::IsUnavailable(begun.status())) {
    // Somebody holds the file, such as a tool that copies it. Nothing has happened.
    LOCKSTEP_LOG_WARNING("a batch of {} requests was refused: {}", batch.size(), begun.status());
    for (const WriteRequest& request : batch) request.done(begun.status());
    return absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(begun.status());
  StoreTransaction& transaction = **begun;
  LOCKSTEP_RETURN_IF_ERROR(transaction.SetServiceMs(time_.NowMs()));
  LOCKSTEP_RETURN_IF_ERROR(transaction.SetLogSize(log_.size()));

  WriteContext context(transaction);
  std::vector<absl::Status> answers;
  for (const WriteRequest& request : batch) {
    const size_t envelopes = context.envelopes_.size();
    const size_t committed = context.committed_.size();
    answers.push_back(transaction.Nested([&] { return request.work(context); }));
    if (!answers.back().ok()) {
      context.envelopes_.resize(envelopes);
      context.committed_.resize(committed);
    }
    LOCKSTEP_RETURN_IF_ERROR(transaction.health());
  }
  LOCKSTEP_RETURN_IF_ERROR(transaction.Commit());
  begun->reset();
  if (!context.envelopes_.empty()) LOCKSTEP_RETURN_IF_ERROR(log_.Append(context.envelopes_));

  for (const std::function<void()>& committed : context.committed_) committed();
  for (size_t i = 0; i < batch.size(); ++i) batch[i].done(std::move(answers[i]));
  return absl::OkStatus();
}

void GroupCommit::Fail(const absl::Status& error) {
  LOCKSTEP_LOG_ERROR("the writer has stopped, and the process should end: {}", error);
  {
    const std::lock_guard lock(mutex_);
    failure_ = absl::UnavailableError(
        absl::StrCat("the coordinator can no longer write (", error.message(),
                     "); the request may or may not have been kept: try again later"));
  }
  options_.on_failure(error);
}

}  // namespace lockstep::coordinator
