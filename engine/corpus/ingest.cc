// SPDX-License-Identifier: Apache-2.0
//
// The pipeline of an ingest. All threads do the same: whoever is free writes the next block in
// order if it is ready, and otherwise reads a block and filters it. One thread at a time reads and
// one writes, so that both see the blocks in order; filtering goes on beside them. One thread alone
// is a plain loop.
#include "engine/corpus/ingest.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

  absl::Status Run() {
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
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  enum class Step { kRead, kWrite, kStop };
  using Filtered = absl::StatusOr<FilteredBlock>;

  void Work() {
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
  Step NextStep(Filtered* filtered) {
    std::unique_lock lock(mutex_);
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
      changed_.wait(lock);
    }
  }

  void Write(const Filtered& filtered) {
    // An error of the reader takes its place in the order, so that what is before it is always
    // written.
    absl::Status status = filtered.ok() ? writer_.Write(*filtered) : filtered.status();
    const std::lock_guard lock(mutex_);
    writing_ = false;
    ++written_;
    if (status_.ok()) status_ = std::move(status);
    changed_.notify_all();
  }

  void ReadAndFilter(DocumentFilter& filter) {
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
      const std::lock_guard lock(mutex_);
      reading_ = false;
      if (interrupted && status_.ok()) status_ = Interruption();
      if (!more) ended_ = true;
      if (!status.ok()) ready_.emplace(read_++, std::move(status));
      if (more) number = read_++;
      changed_.notify_all();
    }
    if (!more) return;
    FilteredBlock filtered = filter.Filter(block);
    const std::lock_guard lock(mutex_);
    ready_.emplace(number, std::move(filtered));
    changed_.notify_all();
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

  // Guards all that follows. The standard's mutex and not Abseil's, which ThreadSanitizer cannot
  // see into as Debian builds it.
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status status_;
  bool reading_ = false;
  bool writing_ = false;
  bool ended_ = false;   // there is nothing left to read
  int64_t read_ = 0;     // blocks; they are numbered in this order
  int64_t written_ = 0;  // blocks
  std::map<int64_t, Filtered> ready_;
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
