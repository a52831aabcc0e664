// SPDX-License-Identifier: Apache-2.0
//
// Two small files beside a shard's tokens: the index (where each document begins) and the
// documents' names. Replay needs the index alone; names are for people. Formats:
// docs/shards.md.
#ifndef LOCKSTEP_ENGINE_DATA_SHARD_INDEX_H_
#define LOCKSTEP_ENGINE_DATA_SHARD_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"

namespace lockstep::engine {

// begins[d] is the first token of document d within the shard, begins[documents] the number of
// tokens. Strictly ascending from 0: a document has at least its separator.
struct ShardIndex {
  std::vector<uint32_t> begins;
  uint64_t documents() const { return begins.size() - 1; }
};

// Exact sizes of the files, for documents < 2^32 and names of text_bytes in all.
uint64_t ShardIndexBytes(uint64_t documents);
uint64_t ShardNamesBytes(uint64_t documents, uint64_t text_bytes);

std::string EncodeShardIndex(const std::vector<uint32_t>& begins);
std::string EncodeShardNames(const std::vector<std::string>& names);

// Accept exactly what the encoders write for that many documents and tokens. Untrusted input;
// DataLoss gives the offset.
absl::StatusOr<ShardIndex> ParseShardIndex(ByteSpan bytes, uint64_t documents, uint64_t tokens);
absl::StatusOr<std::vector<std::string>> ParseShardNames(ByteSpan bytes, uint64_t documents);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_SHARD_INDEX_H_
