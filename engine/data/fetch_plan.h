// SPDX-License-Identifier: Apache-2.0
//
// What a replay must fetch: the byte ranges of a corpus's files that a stretch of windows touches,
// and nothing else. A worker with the plan's bytes, a manifest and a cursor replays without another
// byte.
#ifndef LOCKSTEP_ENGINE_DATA_FETCH_PLAN_H_
#define LOCKSTEP_ENGINE_DATA_FETCH_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/thread_pool.h"
#include "engine/data/cursor.h"
#include "engine/data/range_source.h"
#include "engine/data/shard_reader.h"
#include "engine/data/stream.h"

namespace lockstep::engine {

struct ByteRange {
  uint64_t begin;
  uint64_t end;
  bool operator==(const ByteRange&) const = default;
};

// Token files in whole chunks, neighbours merged, ascending; other files whole.
struct FileRanges {
  ShardFileId id;
  std::vector<ByteRange> ranges;
  bool operator==(const FileRanges&) const = default;
};

struct FetchPlan {
  std::vector<FileRanges> files;  // by source, shard, file
  uint64_t bytes = 0;             // of all ranges
};

// For Seek(cursor) and the `windows` windows after it: the indices that the walk reads, the chunks
// that hold the windows' tokens, and the chunk digests of those shards. `interrupted` is asked
// between windows: Cancelled.
absl::StatusOr<FetchPlan> PlanFetch(const CorpusReader& corpus, uint64_t seed, uint64_t seq_len,
                                    const StreamCursor& cursor, uint64_t windows,
                                    absl::FunctionRef<bool()> interrupted);

struct FetchHooks {
  absl::FunctionRef<void(int64_t bytes)> progress;  // any thread
  absl::FunctionRef<bool()> interrupted;            // any thread
};

// Reads all that the plan names through the corpus's source, so that it lies in that source's cache
// (OpenCorpus) afterwards. The pool's threads wait for the network at the same time. The error is
// that of the plan's first piece that cannot be had; what came before and beside it is kept.
absl::Status FetchPlanned(const CorpusReader& corpus, const FetchPlan& plan, ThreadPool& pool,
                          const FetchHooks& hooks);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_FETCH_PLAN_H_
