// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: shard indices and names, for numbers of documents and tokens that the input chooses
// too. What is accepted must be what would be written.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/logging.h"
#include "engine/data/fuzz/edits.h"
#include "engine/data/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::engine;
  if (size < 2) return 0;
  static const std::string* const index = new std::string(EncodeShardIndex({0, 4, 5, 300}));
  static const std::string* const names = new std::string(EncodeShardNames({"a", "", "bc"}));
  // Usually what the good ones have.
  const uint64_t documents = data[0] < 200 ? 3 : data[0] - 200;
  const uint64_t tokens = data[1] < 200 ? 300 : data[1];
  const ByteSpan rest(data + 2, size - 2);

  const std::string index_bytes = fuzz::BytesOrEdits(rest, *index);
  const auto parsed = ParseShardIndex(AsBytes(index_bytes), documents, tokens);
  LOCKSTEP_CHECK(parsed.ok() || absl::IsDataLoss(parsed.status()));
  if (parsed.ok()) {
    LOCKSTEP_CHECK(EncodeShardIndex(parsed->begins) == index_bytes);
    LOCKSTEP_CHECK(parsed->documents() == documents && parsed->begins.back() == tokens);
  }
  const std::string names_bytes = fuzz::BytesOrEdits(rest, *names);
  const auto list = ParseShardNames(AsBytes(names_bytes), documents);
  LOCKSTEP_CHECK(list.ok() || absl::IsDataLoss(list.status()));
  if (list.ok()) {
    LOCKSTEP_CHECK(list->size() == documents);
    LOCKSTEP_CHECK(EncodeShardNames(*list) == names_bytes);
  }
  return 0;
}
