// SPDX-License-Identifier: Apache-2.0
//
// Where bytes of a corpus's files come from: a folder, memory, or a mirror on the network. A source
// is not trusted; what makes its bytes good is VerifiedRangeSource, which checks each chunk or file
// against the manifest.
#ifndef LOCKSTEP_ENGINE_DATA_RANGE_SOURCE_H_
#define LOCKSTEP_ENGINE_DATA_RANGE_SOURCE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/data/manifest.h"

namespace lockstep::engine {

// One file of a corpus. Source and shard are places in the manifest, and within it.
struct ShardFileId {
  uint32_t source;
  uint32_t shard;
  ShardFile file;
  auto operator<=>(const ShardFileId&) const = default;
};

// Any thread may read. Implementations by HTTP send one range request per call, or read ahead as
// they like.
class RangeSource {
 public:
  virtual ~RangeSource() = default;
  // Fills `out` with the file's bytes from `begin` on. Within the size that the manifest gives; a
  // source that has fewer bytes returns DataLoss, one that cannot be reached Unavailable.
  virtual absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) = 0;
};

// Files in a corpus folder, as BuildCorpus leaves it.
class LocalRangeSource final : public RangeSource {
 public:
  LocalRangeSource(std::string folder, std::shared_ptr<const CorpusManifest> manifest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)) {}
  absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) override;

 private:
  const std::string folder_;
  const std::shared_ptr<const CorpusManifest> manifest_;
};

// Checks what another source gives, and keeps it. Of a token file, only whole chunks are asked for,
// and the chunk digests once; of any other file, the whole file once. A byte that is returned is
// the one that the manifest commits to. Wrong bytes are DataLoss with file, chunk, offset, expected
// and found digest, and are not kept: the next read asks again.
class VerifiedRangeSource final : public RangeSource {
 public:
  // Keeps about bytes_max bytes, the most recently read.
  VerifiedRangeSource(std::shared_ptr<RangeSource> inner,
                      std::shared_ptr<const CorpusManifest> manifest,
                      uint64_t bytes_max = uint64_t{64} << 20)
      : inner_(std::move(inner)), manifest_(std::move(manifest)), bytes_max_(bytes_max) {}
  absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) override;

 private:
  using Bytes = std::shared_ptr<const std::string>;
  // A chunk of a token file, or chunk 0 for the whole of another file.
  using Key = std::pair<std::tuple<uint32_t, uint32_t, int>, uint64_t>;
  struct Item {
    Key key;
    Bytes bytes;
  };

  absl::StatusOr<Bytes> Piece(const ShardFileId& id, uint64_t chunk);
  absl::StatusOr<Bytes> Fetch(const ShardFileId& id, uint64_t chunk);
  absl::Status CheckChunk(const ShardFileId& id, uint64_t chunk, const std::string& bytes);
  absl::Status CheckFile(const ShardFileId& id, const std::string& bytes) const;
  void Keep(const Key& key, const Bytes& bytes);

  const std::shared_ptr<RangeSource> inner_;
  const std::shared_ptr<const CorpusManifest> manifest_;
  const uint64_t bytes_max_;
  absl::Mutex mutex_;
  std::list<Item> recent_ ABSL_GUARDED_BY(mutex_);  // front: read last
  std::map<Key, std::list<Item>::iterator> items_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The name for messages, "web/00042.tokens". The id must be one of the manifest's.
std::string NameOf(const CorpusManifest& manifest, const ShardFileId& id);

// Parses and checks a chunk digests' file: DataLoss unless the digests have the shard's root.
absl::StatusOr<std::vector<Digest>> ParseChunkDigests(absl::string_view bytes,
                                                      const ShardEntry& shard);

// OK, or DataLoss that names the chunk, its offset, and both digests.
absl::Status CheckChunkDigest(uint64_t chunk, uint64_t chunk_bytes, const Digest& expected,
                              const Digest& found);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_RANGE_SOURCE_H_
