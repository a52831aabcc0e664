// SPDX-License-Identifier: Apache-2.0
//
// Builds a corpus: documents through a tokenizer into shards, and the manifest over them (`lockstep
// corpus build`). The result is a function of the inputs and of two sizes; threads, kills and
// restarts leave no trace in it.
#ifndef LOCKSTEP_ENGINE_DATA_BUILD_H_
#define LOCKSTEP_ENGINE_DATA_BUILD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "engine/corpus/document_store.h"
#include "engine/data/manifest.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::engine {

// A source's documents, as a DocumentStore has them.
struct BuildSource {
  std::string name;
  std::string licence;
  Digest store;
  uint64_t text_bytes = 0;
  int64_t parts = 0;
  // Called by several threads at a time.
  std::function<absl::StatusOr<std::vector<Document>>(int64_t part)> read_part;
};

// What a Tokenizer gives.
struct BuildTokenizer {
  Digest digest;
  uint32_t vocab_size = 0;
  uint32_t separator = 0;
  std::function<std::vector<std::vector<int32_t>>(const std::vector<absl::string_view>& texts,
                                                  ThreadPool& pool)>
      encode_all;
};

BuildSource SourceOf(DocumentStore store);
BuildTokenizer TokenizerOf(std::shared_ptr<const Tokenizer> tokenizer);

struct BuildOptions {
  std::string out;  // a folder, made if it is not there
  uint64_t shard_tokens =
      uint64_t{1} << 24;  // a shard holds more only if one document does; at most kShardTokensMax
  uint64_t chunk_bytes = uint64_t{16} << 10;
  std::map<std::string, uint64_t>
      shares;  // token share by source; without one, the source's tokens
};

struct BuildHooks {
  absl::FunctionRef<void(int64_t text_bytes)> progress;  // just tokenized
  absl::FunctionRef<void(int64_t text_bytes)> resumed;   // found done by an earlier run
  absl::FunctionRef<bool()> interrupted;                 // true: stop at the next safe place
};

struct BuildReport {
  CorpusManifest manifest;
  Digest digest;
  bool was_there = false;  // a finished corpus of the same inputs: nothing was done
};

// Sources in any order; the corpus has them by name. Documents keep their order; a shard is closed
// before a document that would take it past shard_tokens (or its names past 256 MiB).
//
// Each finished shard is recorded under OUT/.build, and OUT/manifest.json is written last: a run
// that was killed or interrupted (Cancelled) goes on from the last finished shard when it is called
// again with the same inputs, and a folder without manifest.json is not a corpus. Other inputs than
// those of the work found in OUT: FailedPrecondition. Wrong options: InvalidArgument. Memory: as
// many parts as there are threads, and the names of one shard.
absl::StatusOr<BuildReport> BuildCorpus(const BuildTokenizer& tokenizer,
                                        std::vector<BuildSource> sources,
                                        const BuildOptions& options, ThreadPool& pool,
                                        const BuildHooks& hooks);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_BUILD_H_
