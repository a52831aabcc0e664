// SPDX-License-Identifier: Apache-2.0
//
// Counting pieces, each thread for itself; the sums and their order do not depend on who counted
// what.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "engine/tokenizer/splitter.h"
#include "engine/tokenizer/train.h"

namespace lockstep::engine {
namespace {

using Counts = absl::flat_hash_map<std::string, int64_t>;

// The state that parts share: tables to count into, and the error of the earliest part that failed.
class Counter {
 public:
  explicit Counter(const TrainHooks& hooks) : hooks_(hooks) {}

  void CountPart(const TextSource& source, int64_t part) {
    std::unique_ptr<Counts> counts = Take();
    bool stopped = hooks_.interrupted();
    absl::Status status = absl::OkStatus();
    if (!stopped) {
      status = source.Read(part, [&](absl::string_view text) {
        stopped = stopped || hooks_.interrupted();
        if (stopped) return;
        splitter_.ForEachPiece(text, [&counts](absl::string_view piece) { ++(*counts)[piece]; });
        hooks_.bytes_counted(static_cast<int64_t>(text.size()));
      });
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(counts));
    if (stopped) stopped_ = true;
    if (!status.ok() && (status_.ok() || part < failed_part_)) {
      status_ = std::move(status);
      failed_part_ = part;
    }
  }

  absl::StatusOr<std::vector<PieceCount>> Finish() {
    LOCKSTEP_RETURN_IF_ERROR(status_);
    if (stopped_) return absl::CancelledError("interrupted while counting; nothing was written");
    Counts all;
    for (const std::unique_ptr<Counts>& counts : free_) {
      if (all.empty()) {
        all = std::move(*counts);
      } else {
        for (const auto& [piece, count] : *counts) all[piece] += count;
      }
      *counts = Counts();
    }
    std::vector<PieceCount> pieces;
    pieces.reserve(all.size());
    for (const auto& [piece, count] : all) pieces.push_back({piece, count});
    std::sort(pieces.begin(), pieces.end(),
              [](const PieceCount& a, const PieceCount& b) { return a.piece < b.piece; });
    return pieces;
  }

 private:
  std::unique_ptr<Counts> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<Counts>();
    std::unique_ptr<Counts> counts = std::move(free_.back());
    free_.pop_back();
    return counts;
  }

  const TrainHooks& hooks_;
  const Splitter splitter_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Counts>> free_;
  bool stopped_ = false;
  absl::Status status_;
  int64_t failed_part_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<PieceCount>> CountPieces(const TextSource& source, ThreadPool& pool,
                                                    const TrainHooks& hooks) {
  Counter counter(hooks);
  pool.ParallelFor(source.parts(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) counter.CountPart(source, part);
  });
  return counter.Finish();
}

}  // namespace lockstep::engine
