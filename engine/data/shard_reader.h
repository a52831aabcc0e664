// SPDX-License-Identifier: Apache-2.0
//
// A corpus that is read: its manifest, and indices, names and tokens of its shards by way of a
// RangeSource. Trusts nothing about the bytes beyond what it checks here: shapes and ranges always,
// digests if the source is a VerifiedRangeSource.
#ifndef LOCKSTEP_ENGINE_DATA_SHARD_READER_H_
#define LOCKSTEP_ENGINE_DATA_SHARD_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/manifest.h"
#include "engine/data/range_source.h"
#include "engine/data/shard_index.h"

namespace lockstep::engine {

// Immutable; any thread may call.
class CorpusReader {
 public:
  // Reads and checks FOLDER/manifest.json, which must have that digest if one is given; files of
  // shards are read as they are needed, each chunk checked against the manifest as it is read.
  static absl::StatusOr<std::shared_ptr<const CorpusReader>> OpenFolder(
      const std::string& folder, const std::optional<Digest>& manifest = std::nullopt);

  // Over any source. Checked: that the manifest is valid (ValidateManifest).
  static absl::StatusOr<std::shared_ptr<const CorpusReader>> Open(
      std::shared_ptr<const CorpusManifest> manifest, std::shared_ptr<RangeSource> source);

  const CorpusManifest& manifest() const { return *manifest_; }
  const std::shared_ptr<const CorpusManifest>& shared_manifest() const { return manifest_; }
  const std::shared_ptr<RangeSource>& source() const { return source_; }
  const Digest& digest() const { return digest_; }  // of the manifest

  // Source and shard must be the manifest's.
  absl::StatusOr<ShardIndex> ReadIndex(uint32_t source, uint32_t shard) const;
  absl::StatusOr<std::vector<std::string>> ReadNames(uint32_t source, uint32_t shard) const;

  // Tokens begin ... begin + out.size() - 1 of the shard. InvalidArgument beyond its end; an id
  // that the tokenizer does not have is DataLoss.
  absl::Status ReadTokens(uint32_t source, uint32_t shard, uint64_t begin,
                          std::span<int32_t> out) const;

 private:
  CorpusReader(std::shared_ptr<const CorpusManifest> manifest, std::shared_ptr<RangeSource> source);
  absl::StatusOr<std::string> ReadWhole(const ShardFileId& id) const;

  const std::shared_ptr<const CorpusManifest> manifest_;
  const std::shared_ptr<RangeSource> source_;
  const Digest digest_;
};

// FOLDER/manifest.json, checked.
absl::StatusOr<CorpusManifest> ReadCorpusManifest(
    const std::string& folder, const std::optional<Digest>& manifest = std::nullopt);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_SHARD_READER_H_
