// SPDX-License-Identifier: Apache-2.0
//
// Where bytes of a corpus's files come from: a folder, memory, or a mirror on the network
// (http_range_source.h). A source is not trusted; what makes its bytes good is VerifiedRangeSource,
// which checks each chunk or file against the manifest.
#ifndef LOCKSTEP_ENGINE_DATA_RANGE_SOURCE_H_
#define LOCKSTEP_ENGINE_DATA_RANGE_SOURCE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "engine/data/manifest.h"

namespace lockstep::engine {

// One file of a corpus. Source and shard are places in the manifest, and within it.
struct ShardFileId {
  uint32_t source;
  uint32_t shard;
  ShardFile file;
  auto operator<=>(const ShardFileId&) const = default;
};

// Any thread may read.
class RangeSource {
 public:
  virtual ~RangeSource() = default;
  // Fills `out` with the file's bytes from `begin` on. Within the size that the manifest gives; a
  // source that has fewer bytes returns DataLoss, one that cannot be reached Unavailable.
  virtual absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) = 0;
  // The file's path or address, for messages.
  virtual std::string Locate(const ShardFileId& id) const = 0;
};

// Files in a corpus folder, as BuildCorpus leaves it, or one that is filled piece by piece: then
// files have their full size from the first Write on, and zeros where nothing was written. Keeps
// the files that were read last open.
class FolderRangeSource final : public RangeSource {
 public:
  FolderRangeSource(std::string folder, std::shared_ptr<const CorpusManifest> manifest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)) {}
  absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) override;
  std::string Locate(const ShardFileId& id) const override;

  // Puts bytes where Read finds them. Not brought to the disk at once: what a power failure tears
  // has a wrong digest at the next read, and is fetched again. Any thread, and any process.
  absl::Status Write(const ShardFileId& id, uint64_t begin, ByteSpan bytes);

 private:
  class File;
  absl::StatusOr<std::shared_ptr<const File>> Open(const ShardFileId& id);

  const std::string folder_;
  const std::shared_ptr<const CorpusManifest> manifest_;
  std::mutex mutex_;  // over all that follows
  std::map<ShardFileId, std::shared_ptr<const File>> files_;
};

// Checks what other sources give, and keeps it. Of a token file, only whole chunks are asked for
// (several neighbours at a time), and the chunk digests once; of any other file, the whole file
// once. A byte that is returned is the one that the manifest commits to. Wrong bytes are DataLoss
// with file, chunk, offset, expected and found digest, and are not kept: the next read asks again.
class VerifiedRangeSource final : public RangeSource {
 public:
  // `sources`, at least one, are asked in this order, and the next one for what the one before does
  // not have good; if none has, the error tells of each. What came from another than `cache` is
  // written there (null: nowhere). Keeps about bytes_max bytes in memory, the most recently read.
  VerifiedRangeSource(std::vector<std::shared_ptr<RangeSource>> sources,
                      std::shared_ptr<const CorpusManifest> manifest,
                      std::shared_ptr<FolderRangeSource> cache = nullptr,
                      uint64_t bytes_max = uint64_t{64} << 20);
  absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) override;
  std::string Locate(const ShardFileId& id) const override { return sources_[0]->Locate(id); }

 private:
  using Bytes = std::shared_ptr<const std::string>;
  // A chunk of a token file, or chunk 0 for the whole of another file.
  using Key = std::pair<std::tuple<uint32_t, uint32_t, int>, uint64_t>;
  struct Item {
    Key key;
    Bytes bytes;
  };

  Bytes Recall(const ShardFileId& id, uint64_t chunk);
  absl::StatusOr<std::vector<Bytes>> Fetch(const ShardFileId& id, uint64_t first, uint64_t last);
  absl::Status FetchFrom(RangeSource& source, const ShardFileId& id, uint64_t first, uint64_t last,
                         const Bytes& digests, std::vector<Bytes>* good) const;
  absl::StatusOr<Bytes> ChunkDigests(const ShardFileId& tokens);
  absl::Status CheckFile(const ShardFileId& id, absl::string_view bytes) const;
  void Keep(const ShardFileId& id, uint64_t chunk, const Bytes& bytes);
  uint64_t SizeOf(const ShardFileId& id) const;
  // Of what is fetched and checked as one: a chunk, or the whole file.
  uint64_t PieceBytes(const ShardFileId& id) const;

  const std::vector<std::shared_ptr<RangeSource>> sources_;
  const std::shared_ptr<const CorpusManifest> manifest_;
  const std::shared_ptr<FolderRangeSource> cache_;
  const uint64_t bytes_max_;
  std::mutex mutex_;        // over all that follows
  std::list<Item> recent_;  // front: read last
  std::map<Key, std::list<Item>::iterator> items_;
  uint64_t bytes_ = 0;
};

// The name for messages, "web/00042.tokens". The id must be one of the manifest's.
std::string NameOf(const CorpusManifest& manifest, const ShardFileId& id);
const FileEntry& EntryOf(const CorpusManifest& manifest, const ShardFileId& id);

// Parses and checks a chunk digests' file: DataLoss unless the digests have the shard's root.
absl::StatusOr<std::vector<Digest>> ParseChunkDigests(absl::string_view bytes,
                                                      const ShardEntry& shard);

// OK, or DataLoss that names the chunk, its offset, and both digests.
absl::Status CheckChunkDigest(uint64_t chunk, uint64_t chunk_bytes, const Digest& expected,
                              const Digest& found);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_RANGE_SOURCE_H_
