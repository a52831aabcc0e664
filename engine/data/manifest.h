// SPDX-License-Identifier: Apache-2.0
//
// The manifest of a built corpus: which sources, shards and files there are, by size and digest.
// Whoever knows the manifest's digest can fetch any byte range of any file from anyone and check it
// alone. Format: docs/shards.md.
#ifndef LOCKSTEP_ENGINE_DATA_MANIFEST_H_
#define LOCKSTEP_ENGINE_DATA_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"

namespace lockstep::engine {

inline constexpr char kCorpusManifestFile[] = "manifest.json";
inline constexpr char kCorpusFormat[] = "lockstep-corpus-1";
inline constexpr size_t kCorpusManifestBytesMax = size_t{64} << 20;  // about 100,000 shards

// What bounds a shard, and so the memory that a manifest from a stranger can make its reader take.
inline constexpr uint64_t kShardTokensMax = uint64_t{1} << 28;
inline constexpr uint64_t kShardNamesBytesMax = uint64_t{1} << 28;
inline constexpr uint64_t kShareMax = uint64_t{1} << 56;

enum class ShardFile { kTokens, kIndex, kNames, kChunks };
inline constexpr ShardFile kShardFiles[] = {ShardFile::kTokens, ShardFile::kIndex,
                                            ShardFile::kNames, ShardFile::kChunks};

struct FileEntry {
  uint64_t bytes = 0;
  Digest sha256;
  bool operator==(const FileEntry&) const = default;
};

struct ShardEntry {
  uint64_t documents = 0;  // 1 ... tokens
  uint64_t tokens = 0;     // separators included
  Digest root;             // RFC 6962 root over the chunks of the token file
  FileEntry files[4];      // by ShardFile
  const FileEntry& file(ShardFile which) const { return files[static_cast<int>(which)]; }
  FileEntry& file(ShardFile which) { return files[static_cast<int>(which)]; }
  bool operator==(const ShardEntry&) const = default;
};

struct SourceEntry {
  std::string name;  // see IsSourceName
  std::string licence;
  Digest store;             // of the document store's manifest
  uint64_t text_bytes = 0;  // of the documents' texts
  uint64_t documents = 0;   // sum over shards
  uint64_t tokens = 0;      // sum over shards
  uint64_t share = 0;  // token share of the mix, in any unit: only ratios matter; at most kShareMax
  std::vector<ShardEntry> shards;
  bool operator==(const SourceEntry&) const = default;
};

struct CorpusManifest {
  Digest tokenizer;
  uint32_t vocab_size = 0;           // 1 ... 2^31 - 1; token ids are below it
  uint32_t separator = 0;            // the id that ends each document, and is nowhere else
  uint32_t token_bytes = 0;          // 2 if vocab_size <= 65536, else 4
  uint64_t chunk_bytes = 0;          // a power of two, 4 KiB ... 16 MiB
  uint64_t shard_tokens = 0;         // what shards were cut at
  std::vector<SourceEntry> sources;  // names ascending, as byte strings
  bool operator==(const CorpusManifest&) const = default;
};

// 1 to 64 of a-z A-Z 0-9 _ - and, not first, the dot; not "manifest.json". So a folder's name on
// every system, and never a way out of the corpus's folder.
bool IsSourceName(absl::string_view name);

// 2 or 4: the width of a token id on the disk.
uint32_t TokenBytes(uint32_t vocab_size);

// "web/00042.tokens": where a file lies in the corpus folder, and under a mirror's address.
std::string ShardFileName(absl::string_view source, uint64_t shard, ShardFile which);

// Chunks of a token file of that many bytes, and the bytes of the chunk digests' file.
uint64_t ChunkCount(uint64_t token_file_bytes, uint64_t chunk_bytes);

// The canonical bytes: JSON, keys sorted, no white space, integers only.
std::string SerializeManifest(const CorpusManifest& manifest);

// One shard's entry in the same form: the record of a build that is not finished.
std::string SerializeShardEntry(const ShardEntry& shard);

// Accepts exactly the canonical bytes of a manifest that keeps every rule of docs/shards.md;
// DataLoss says which rule is broken and where. Untrusted input.
absl::StatusOr<CorpusManifest> ParseCorpusManifest(absl::string_view bytes);
absl::StatusOr<ShardEntry> ParseShardEntry(absl::string_view bytes, uint32_t token_bytes,
                                           uint64_t chunk_bytes);

// What ParseCorpusManifest checks beyond the form: counts, sizes, order of names, ranges. DataLoss.
absl::Status ValidateManifest(const CorpusManifest& manifest);

// SHA-256 of the canonical bytes: what runs name a corpus by.
Digest ManifestDigest(const CorpusManifest& manifest);

// That a file has the digest that a run names, before it is parsed: DataLoss.
absl::Status CheckManifestDigest(absl::string_view bytes, const Digest& expected);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_MANIFEST_H_
