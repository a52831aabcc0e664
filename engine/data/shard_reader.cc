// SPDX-License-Identifier: Apache-2.0
//
// Reading of shards. See shard_reader.h.
#include "engine/data/shard_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<CorpusManifest> ReadCorpusManifest(const std::string& folder,
                                                  const std::optional<Digest>& expected) {
  const std::string path = absl::StrCat(folder, "/", kCorpusManifestFile);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kCorpusManifestBytesMax));
  if (expected) LOCKSTEP_RETURN_IF_ERROR(CheckManifestDigest(bytes, *expected), path);
  LOCKSTEP_ASSIGN_OR_RETURN(CorpusManifest manifest, ParseCorpusManifest(bytes), path);
  return manifest;
}

CorpusReader::CorpusReader(std::shared_ptr<const CorpusManifest> manifest,
                           std::shared_ptr<RangeSource> source)
    : manifest_(std::move(manifest)),
      source_(std::move(source)),
      digest_(ManifestDigest(*manifest_)) {}

absl::StatusOr<std::shared_ptr<const CorpusReader>> CorpusReader::OpenFolder(
    const std::string& folder, const std::optional<Digest>& expected) {
  LOCKSTEP_ASSIGN_OR_RETURN(CorpusManifest parsed, ReadCorpusManifest(folder, expected));
  const auto manifest = std::make_shared<const CorpusManifest>(std::move(parsed));
  std::vector<std::shared_ptr<RangeSource>> sources = {
      std::make_shared<FolderRangeSource>(folder, manifest)};
  return Open(manifest, std::make_shared<VerifiedRangeSource>(std::move(sources), manifest));
}

absl::StatusOr<std::shared_ptr<const CorpusReader>> CorpusReader::Open(
    std::shared_ptr<const CorpusManifest> manifest, std::shared_ptr<RangeSource> source) {
  LOCKSTEP_RETURN_IF_ERROR(ValidateManifest(*manifest), "corpus manifest");
  return std::shared_ptr<const CorpusReader>(
      new CorpusReader(std::move(manifest), std::move(source)));
}

absl::StatusOr<std::string> CorpusReader::ReadWhole(const ShardFileId& id) const {
  std::string bytes(manifest_->sources[id.source].shards[id.shard].file(id.file).bytes, '\0');
  LOCKSTEP_RETURN_IF_ERROR(
      source_->Read(id, 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
  return bytes;
}

absl::StatusOr<ShardIndex> CorpusReader::ReadIndex(uint32_t source, uint32_t shard) const {
  const ShardFileId id = {source, shard, ShardFile::kIndex};
  const ShardEntry& entry = manifest_->sources[source].shards[shard];
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(id));
  LOCKSTEP_ASSIGN_OR_RETURN(ShardIndex index,
                            ParseShardIndex(AsBytes(bytes), entry.documents, entry.tokens),
                            NameOf(*manifest_, id));
  return index;
}

absl::StatusOr<std::vector<std::string>> CorpusReader::ReadNames(uint32_t source,
                                                                 uint32_t shard) const {
  const ShardFileId id = {source, shard, ShardFile::kNames};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(id));
  using Names = std::vector<std::string>;
  LOCKSTEP_ASSIGN_OR_RETURN(
      Names names,
      ParseShardNames(AsBytes(bytes), manifest_->sources[source].shards[shard].documents),
      NameOf(*manifest_, id));
  return names;
}

absl::Status CorpusReader::ReadTokens(uint32_t source, uint32_t shard, uint64_t begin,
                                      std::span<int32_t> out) const {
  const ShardFileId id = {source, shard, ShardFile::kTokens};
  const uint64_t tokens = manifest_->sources[source].shards[shard].tokens;
  if (begin > tokens || out.size() > tokens - begin) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(*manifest_, id), ": tokens ", begin,
                                                   " to ", begin + out.size(), " of ", tokens));
  }
  const size_t width = manifest_->token_bytes;
  std::vector<uint8_t> bytes(out.size() * width);
  LOCKSTEP_RETURN_IF_ERROR(source_->Read(id, begin * width, bytes));
  for (size_t i = 0; i < out.size(); ++i) {
    const uint8_t* at = bytes.data() + i * width;
    uint32_t token = at[0] | uint32_t{at[1]} << 8;
    if (width == 4) token |= uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
    if (token >= manifest_->vocab_size) {
      return absl::DataLossError(absl::StrCat(NameOf(*manifest_, id), ": byte offset ",
                                              (begin + i) * width, ": expected a token below ",
                                              manifest_->vocab_size, ", found ", token));
    }
    out[i] = static_cast<int32_t>(token);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::engine
