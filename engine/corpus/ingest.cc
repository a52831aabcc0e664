// SPDX-License-Identifier: Apache-2.0
//
// The pipeline of an ingest. All threads do the same: whoever is free writes the next block in
// order if it is ready, and otherwise reads a block and filters it. One thread at a time reads and
// one writes, so that both see the blocks in order; filtering goes on beside them. One thread alone
// is a plain loop.
#include "engine/corpus/ingest.h"

#include <algorithm>
#include <map>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "engine/corpus/document_filter.h"
#include "engine/corpus/ingest_writer.h"
#include "engine/corpus/record_reader.h"

namespace lockstep::engine {
namespace {

class Pipeline {
 public:
  Pipeline(const SourceConfig& source, const InputFiles& inputs, const IngestOptions& options,
           const IngestHooks& hooks, IngestWriter& writer)
      : source_(source),
        inputs_(inputs),
        threads_(std::clamp(options.threads, 1, 1024)),
        hooks_(hooks),
        reader_(source, inputs, options.block_bytes, writer.position()),
        writer_(writer) {
    for (int64_t file = 0; file < writer.position().file; ++file) {
      bytes_before_ += inputs.files[static_cast<size_t>(file)].bytes;
    }
  }

  absl::Status Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    ReportProgress();
    std::vector<std::thread> others;
    for (int i = 1; i < threads_; ++i) {
      try {
        others.emplace_back([this] { Work(); });
      } catch (const std::system_error&) {
        break;  // as many as the system gives
      }
    }
    Work();
    for (std::thread& thread : others) thread.join();
    const absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  enum class Step { kRead, kWrite, kStop };
  using Filtered = absl::StatusOr<FilteredBlock>;

  void Work() ABSL_LOCKS_EXCLUDED(mutex_) {
    DocumentFilter filter(source_, inputs_);
    while (true) {
      Filtered filtered = FilteredBlock();
      switch (NextStep(&filtered)) {
        case Step::kStop:
          return;
        case Step::kWrite:
          Write(filtered);
          break;
        case Step::kRead:
          ReadAndFilter(filter);
          break;
      }
    }
  }

  // Waits until there is something to do. Takes the reader's or the writer's place for it.
  Step NextStep(Filtered* filtered) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    while (true) {
      if (!status_.ok()) return Step::kStop;
      if (const auto next = ready_.find(written_); !writing_ && next != ready_.end()) {
        writing_ = true;
        *filtered = std::move(next->second);
        ready_.erase(next);
        return Step::kWrite;
      }
      if (!reading_ && !ended_ && read_ - written_ < 2 * threads_ + 1) {
        reading_ = true;
        return Step::kRead;
      }
      if (ended_ && written_ == read_) return Step::kStop;
      changed_.Wait(&mutex_);
    }
  }

  void Write(const Filtered& filtered) ABSL_LOCKS_EXCLUDED(mutex_) {
    // An error of the reader takes its place in the order, so that what is before it is always
    // written.
    absl::Status status = filtered.ok() ? writer_.Write(*filtered) : filtered.status();
    const absl::MutexLock lock(&mutex_);
    writing_ = false;
    ++written_;
    if (status_.ok()) status_ = std::move(status);
    changed_.SignalAll();
  }

  void ReadAndFilter(DocumentFilter& filter) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::Status status;
    bool more = false;
    Block block;
    const bool interrupted = hooks_.interrupted && hooks_.interrupted();
    if (!interrupted) {
      const absl::StatusOr<bool> next = reader_.Next(&block);
      status = next.status();
      more = next.ok() && *next;
      ReportProgress();
    }
    int64_t number = 0;
    {
      const absl::MutexLock lock(&mutex_);
      reading_ = false;
      if (interrupted && status_.ok()) status_ = Interruption();
      if (!more) ended_ = true;
      if (!status.ok()) ready_.emplace(read_++, std::move(status));
      if (more) number = read_++;
      changed_.SignalAll();
    }
    if (!more) return;
    FilteredBlock filtered = filter.Filter(std::move(block));
    const absl::MutexLock lock(&mutex_);
    ready_.emplace(number, std::move(filtered));
    changed_.SignalAll();
  }

  // By whoever reads.
  void ReportProgress() const {
    if (hooks_.progress) hooks_.progress(bytes_before_, reader_.file_bytes_read());
  }

  absl::Status Interruption() const {
    return absl::CancelledError(absl::StrCat(
        "source ", source_.name,
        ": stopped; the parts that are finished stay, and the same command goes on after "
        "them"));
  }

  const SourceConfig& source_;
  const InputFiles& inputs_;
  const int threads_;
  const IngestHooks& hooks_;
  int64_t bytes_before_ = 0;
  RecordReader reader_;   // of the thread that set reading_
  IngestWriter& writer_;  // of the thread that set writing_

  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // there is nothing left to read
  int64_t read_ ABSL_GUARDED_BY(mutex_) = 0;     // blocks; they are numbered in this order
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // blocks
  std::map<int64_t, Filtered> ready_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<IngestReport> IngestSource(const SourceConfig& source, const InputFiles& inputs,
                                          const std::string& folder, const IngestOptions& options,
                                          const IngestHooks& hooks) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<IngestWriter> writer,
                            IngestWriter::Open(source, inputs, folder, options, hooks));
  if (writer->finished()) {
    if (hooks.progress) hooks.progress(inputs.bytes, 0);
    return writer->report();
  }
  LOCKSTEP_RETURN_IF_ERROR(Pipeline(source, inputs, options, hooks, *writer).Run());
  LOCKSTEP_RETURN_IF_ERROR(writer->Finish());
  return writer->report();
}

}  // namespace lockstep::engine
