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

// Skips to `window`, which is not behind the stream (InvalidArgument), in pieces between which
// `interrupted` is asked and `progress` is told the windows walked.
absl::Status WalkTo(Stream& stream, uint64_t window,
                    absl::FunctionRef<void(int64_t windows)> progress,
                    absl::FunctionRef<bool()> interrupted);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_FETCH_PLAN_H_
