// SPDX-License-Identifier: Apache-2.0
//
// The writer's threads. See group_commit.h.

#include "coordinator/group_commit/group_commit.h"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/group_commit/recovery.h"

namespace lockstep::coordinator {
namespace {

// For top, and who looks at their system calls.
constexpr char kThreadName[] = "store-writer";
constexpr char kLogThreadName[] = "log-writer";

}  // namespace

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
  writer->log_thread_ = std::thread([w = writer.get()] { w->RunLog(); });
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
  if (log_thread_.joinable()) log_thread_.join();
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
  pthread_setname_np(pthread_self(), kThreadName);
  for (Batch batch = NextBatch(); !batch.empty(); batch = NextBatch()) {
    if (const absl::Status failed = status(); !failed.ok()) {
      AnswerAll(batch, failed);
      continue;
    }
    absl::StatusOr<std::optional<Stored>> stored = StoreBatch(batch);
    if (!stored.ok()) {
      Fail(stored.status());
      AnswerAll(batch, status());
    } else if (*stored) {
      HandOver(*std::move(stored));
    }
  }
  HandOver(std::nullopt);
}

void GroupCommit::RunLog() {
  pthread_setname_np(pthread_self(), kLogThreadName);
  while (true) {
    std::optional<Stored> stored;
    {
      std::unique_lock lock(mutex_);
      handed_over_.wait(lock, [this] { return stored_.has_value() || no_more_; });
      stored.swap(stored_);
    }
    if (!stored) return;
    handed_over_.notify_all();
    if (status().ok()) {
      const absl::Status error = AppendAndAnswer(*stored);
      if (error.ok()) continue;
      Fail(error);
    }
    // In the store, and not in the log: the next start appends it.
    AnswerAll(stored->batch, status());
  }
}

void GroupCommit::HandOver(std::optional<Stored> stored) {
  {
    std::unique_lock lock(mutex_);
    handed_over_.wait(lock, [this] { return !stored_.has_value(); });
    no_more_ = !stored.has_value();
    stored_ = std::move(stored);
  }
  handed_over_.notify_all();
}

void GroupCommit::AnswerAll(const Batch& batch, const absl::Status& answer) {
  for (const WriteRequest& request : batch) request.done(answer);
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

absl::StatusOr<std::optional<GroupCommit::Stored>> GroupCommit::StoreBatch(Batch& batch) {
  absl::StatusOr<std::unique_ptr<StoreTransaction>> begun = store_.Write();
  if (absl::IsUnavailable(begun.status())) {
    // Somebody holds the file, such as a tool that copies it. Nothing has happened.
    LOCKSTEP_LOG_WARNING("a batch of {} requests was refused: {}", batch.size(), begun.status());
    AnswerAll(batch, begun.status());
    return std::nullopt;
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
  return Stored{.batch = std::move(batch),
                .answers = std::move(answers),
                .envelopes = std::move(context.envelopes_),
                .committed = std::move(context.committed_)};
}

absl::Status GroupCommit::AppendAndAnswer(Stored& stored) {
  if (!stored.envelopes.empty()) LOCKSTEP_RETURN_IF_ERROR(log_.Append(stored.envelopes));
  for (const std::function<void()>& committed : stored.committed) committed();
  for (size_t i = 0; i < stored.batch.size(); ++i) {
    stored.batch[i].done(std::move(stored.answers[i]));
  }
  return absl::OkStatus();
}

void GroupCommit::Fail(const absl::Status& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = absl::UnavailableError(
        absl::StrCat("the coordinator can no longer write (", error.message(),
                     "); the request may or may not have been kept: try again later"));
  }
  changed_.notify_all();
  LOCKSTEP_LOG_ERROR("the writer has stopped, and the process should end: {}", error);
  options_.on_failure(error);
}

}  // namespace lockstep::coordinator
