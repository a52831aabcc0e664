// SPDX-License-Identifier: Apache-2.0
//
// Writes the four files of one shard: tokens as they come, the small ones at the end; each is whole
// and on the disk, or not there. Format: docs/shards.md.
#ifndef LOCKSTEP_ENGINE_DATA_SHARD_WRITER_H_
#define LOCKSTEP_ENGINE_DATA_SHARD_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "engine/data/manifest.h"

namespace lockstep::engine {

struct ShardShape {
  uint32_t vocab_size;
  uint32_t separator;
  uint64_t chunk_bytes;
};

// Not for several threads at once; hashes chunks on the pool's.
class ShardWriter {
 public:
  // The folder `folder`/`source` must exist.
  static absl::StatusOr<ShardWriter> Create(const std::string& folder, const std::string& source,
                                            uint64_t shard, const ShardShape& shape,
                                            ThreadPool& pool);

  // A document: its ids, and the separator after them. InvalidArgument for an id that is not below
  // vocab_size, or is the separator; the shard is then lost.
  absl::Status Add(const std::string& name, std::span<const int32_t> ids);

  uint64_t documents() const { return names_.size(); }
  uint64_t tokens() const { return begins_.back(); }
  uint64_t names_bytes() const { return names_bytes_; }

  // Brings the files to the disk, tokens first. At least one document. Called once, as the last
  // thing.
  absl::StatusOr<ShardEntry> Finish();

 private:
  ShardWriter(DurableFile file, std::string folder, std::string source, uint64_t shard,
              const ShardShape& shape, ThreadPool& pool);
  absl::Status Flush(size_t bytes);
  absl::StatusOr<FileEntry> WriteSmall(ShardFile which, const std::string& bytes);

  DurableFile tokens_file_;
  std::string folder_;
  std::string source_;
  uint64_t shard_;
  ShardShape shape_;
  uint32_t token_bytes_;
  ThreadPool* pool_;
  std::string buffer_;  // of the token file: not yet written
  Sha256Hasher hasher_;
  uint64_t written_ = 0;
  std::vector<Digest> chunks_;
  std::vector<uint32_t> begins_ = {0};
  std::vector<std::string> names_;
  uint64_t names_bytes_ = 0;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_SHARD_WRITER_H_
