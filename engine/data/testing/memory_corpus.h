// SPDX-License-Identifier: Apache-2.0
//
// Corpora that live in memory, for tests, fuzz targets and benchmarks: a manifest and its files
// made from lists of tokens, without a tokenizer and without a disk.
#ifndef LOCKSTEP_ENGINE_DATA_TESTING_MEMORY_CORPUS_H_
#define LOCKSTEP_ENGINE_DATA_TESTING_MEMORY_CORPUS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/coding.h"
#include "base/logging.h"
#include "base/merkle.h"
#include "base/sha256.h"
#include "engine/data/manifest.h"
#include "engine/data/range_source.h"
#include "engine/data/shard_index.h"
#include "engine/data/shard_reader.h"

namespace lockstep::engine::testing {

using Tokens = std::vector<int32_t>;

// Files by their id. A test may change or remove one, make the next reads fail, and see what was
// read.
class MemoryRangeSource final : public RangeSource {
 public:
  absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) override {
    ++reads[id.file];
    if (reads_left && (*reads_left)-- == 0) {
      reads_left.reset();
      return absl::UnavailableError("the mirror does not answer");
    }
    const auto at = files.find(id);
    if (at == files.end() || begin + out.size() > at->second.size()) {
      return absl::DataLossError("ends too early");
    }
    if (!out.empty()) std::memcpy(out.data(), at->second.data() + begin, out.size());
    return absl::OkStatus();
  }

  std::string Locate(const ShardFileId& id) const override {
    return absl::StrCat("memory/", id.source, "/", id.shard, "/", static_cast<int>(id.file));
  }

  std::map<ShardFileId, std::string> files;
  std::map<ShardFile, int> reads;
  std::optional<int> reads_left;  // that many reads go well, one fails, and all after it go well
};

struct MemorySource {
  std::string name;
  std::vector<std::vector<Tokens>> shards;  // [shard][document], without separators
  std::optional<uint64_t> share;            // else the source's tokens
};

struct MemoryCorpus {
  std::shared_ptr<CorpusManifest> manifest;
  std::shared_ptr<MemoryRangeSource> files;
  std::shared_ptr<const CorpusReader> reader;  // checks no digests
};

inline std::string TokenFile(const std::vector<Tokens>& documents, const CorpusManifest& manifest,
                             std::vector<uint32_t>* begins) {
  ByteWriter writer;
  const auto write = [&](uint32_t token) {
    manifest.token_bytes == 2 ? writer.WriteU16(static_cast<uint16_t>(token))
                              : writer.WriteU32(token);
  };
  begins->assign(1, 0);
  for (const Tokens& document : documents) {
    for (int32_t token : document) write(static_cast<uint32_t>(token));
    write(manifest.separator);
    begins->push_back(begins->back() + static_cast<uint32_t>(document.size()) + 1);
  }
  return writer.Take();
}

inline std::string ChunkDigests(const std::string& tokens, uint64_t chunk_bytes, Digest* root) {
  std::vector<Digest> digests;
  std::string bytes;
  for (size_t at = 0; at < tokens.size(); at += chunk_bytes) {
    digests.push_back(MerkleLeafHash(AsBytes(tokens.substr(at, chunk_bytes))));
    bytes.append(digests.back().bytes.begin(), digests.back().bytes.end());
  }
  *root = MerkleRoot(digests);
  return bytes;
}

inline void AddShard(const std::vector<Tokens>& documents, MemoryCorpus& corpus, uint32_t at) {
  SourceEntry& source = corpus.manifest->sources[at];
  const auto number = static_cast<uint32_t>(source.shards.size());
  ShardEntry shard;
  std::vector<uint32_t> begins;
  std::vector<std::string> names;
  for (size_t i = 0; i < documents.size(); ++i) {
    names.push_back(absl::StrCat(source.name, "/", number, "#", i));
  }
  std::map<ShardFile, std::string> files;
  files[ShardFile::kTokens] = TokenFile(documents, *corpus.manifest, &begins);
  files[ShardFile::kChunks] =
      ChunkDigests(files[ShardFile::kTokens], corpus.manifest->chunk_bytes, &shard.root);
  files[ShardFile::kIndex] = EncodeShardIndex(begins);
  files[ShardFile::kNames] = EncodeShardNames(names);
  for (const auto& [which, bytes] : files) {
    shard.file(which) = {bytes.size(), Sha256(AsBytes(bytes))};
    corpus.files->files[{at, number, which}] = bytes;
  }
  shard.documents = documents.size();
  shard.tokens = begins.back();
  source.documents += shard.documents;
  source.tokens += shard.tokens;
  source.shards.push_back(shard);
}

// Names ascending. The separator is token 0; tokens are below vocab_size.
inline MemoryCorpus MakeMemoryCorpus(const std::vector<MemorySource>& sources,
                                     uint32_t vocab_size = 1000, uint64_t chunk_bytes = 4096) {
  MemoryCorpus corpus = {.manifest = std::make_shared<CorpusManifest>(),
                         .files = std::make_shared<MemoryRangeSource>(),
                         .reader = nullptr};
  *corpus.manifest = {.tokenizer = Sha256(AsBytes("tokenizer")),
                      .vocab_size = vocab_size,
                      .separator = 0,
                      .token_bytes = TokenBytes(vocab_size),
                      .chunk_bytes = chunk_bytes,
                      .shard_tokens = 1 << 20,
                      .sources = {}};
  for (uint32_t i = 0; i < sources.size(); ++i) {
    corpus.manifest->sources.push_back({.name = sources[i].name,
                                        .licence = "CC0-1.0",
                                        .store = Sha256(AsBytes(sources[i].name)),
                                        .text_bytes = 0,
                                        .documents = 0,
                                        .tokens = 0,
                                        .share = 0,
                                        .shards = {}});
    for (const std::vector<Tokens>& shard : sources[i].shards) AddShard(shard, corpus, i);
    SourceEntry& source = corpus.manifest->sources.back();
    source.share = sources[i].share.value_or(source.tokens);
  }
  auto reader = CorpusReader::Open(corpus.manifest, corpus.files);
  LOCKSTEP_CHECK(reader.ok(), "{}", reader.status());
  corpus.reader = *reader;
  return corpus;
}

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_DATA_TESTING_MEMORY_CORPUS_H_
