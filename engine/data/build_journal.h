// SPDX-License-Identifier: Apache-2.0
//
// What a corpus build has finished, in a folder .build beside the shards: the plan (all that shards
// depend on), one record for each finished shard, and a lock. It outlives kills, and is removed
// when the corpus is whole. Not a format for others.
#ifndef LOCKSTEP_ENGINE_DATA_BUILD_JOURNAL_H_
#define LOCKSTEP_ENGINE_DATA_BUILD_JOURNAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/manifest.h"

namespace lockstep::engine {

// Where in a source a shard begins or ends.
struct BuildPlace {
  int64_t part = 0;
  uint64_t document = 0;    // of the part
  uint64_t text_bytes = 0;  // of the documents before
};

struct FinishedShard {
  ShardEntry shard;
  BuildPlace end;
};

// Move-only. While it lives, no other process builds into the folder.
class BuildJournal {
 public:
  // Starts a build in `out`, or takes up the one found there: FailedPrecondition if that has
  // another plan, or another process is at it. Makes the folders of `out` and of the sources, and
  // removes the temporary files that a killed process left in them.
  static absl::StatusOr<BuildJournal> Open(const std::string& out, const std::string& plan,
                                           const std::vector<std::string>& sources);
  // Whether an unfinished build is in `out`.
  static bool IsIn(const std::string& out);

  BuildJournal(BuildJournal&& other) noexcept;
  BuildJournal& operator=(BuildJournal&&) = delete;
  ~BuildJournal();

  // A source's finished shards, from shard 0 on.
  absl::StatusOr<std::vector<FinishedShard>> Read(const std::string& source, uint32_t token_bytes,
                                                  uint64_t chunk_bytes) const;
  // On the disk when it returns.
  absl::Status Append(const std::string& source, uint64_t number, const FinishedShard& shard);

  // The end: the corpus's manifest is on the disk.
  absl::Status Remove();

 private:
  BuildJournal(std::string out, int lock) : out_(std::move(out)), lock_(lock) {}
  std::string out_;
  int lock_;  // a file descriptor
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_BUILD_JOURNAL_H_
