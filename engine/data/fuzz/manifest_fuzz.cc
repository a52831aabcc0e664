// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: corpus manifests. Either the input itself, or a good manifest with the input's
// edits, which reaches rules that random bytes never do. What is accepted must be what would be
// written, and keep every rule.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/logging.h"
#include "engine/data/fuzz/edits.h"
#include "engine/data/testing/memory_corpus.h"

namespace lockstep::engine {
namespace {

std::string GoodManifest() {
  const std::vector<testing::Tokens> shard = {testing::Tokens(3, 1), testing::Tokens(3000, 2)};
  return SerializeManifest(
      *testing::MakeMemoryCorpus({{"code", {shard}, {}}, {"web", {shard, shard}, 7}}).manifest);
}

void Check(const std::string& bytes) {
  const absl::StatusOr<CorpusManifest> manifest = ParseCorpusManifest(bytes);
  LOCKSTEP_CHECK(manifest.ok() || absl::IsDataLoss(manifest.status()));
  if (!manifest.ok()) return;
  LOCKSTEP_CHECK(SerializeManifest(*manifest) == bytes);
  LOCKSTEP_CHECK(ValidateManifest(*manifest).ok());
  for (const SourceEntry& source : manifest->sources) {
    LOCKSTEP_CHECK(source.name.find('/') == std::string::npos && source.name[0] != '.');
    for (const ShardEntry& shard : source.shards) {
      const absl::StatusOr<ShardEntry> again =
          ParseShardEntry(SerializeShardEntry(shard), manifest->token_bytes, manifest->chunk_bytes);
      LOCKSTEP_CHECK(again.ok() && *again == shard);
    }
  }
}

}  // namespace
}  // namespace lockstep::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::engine;
  static const std::string* const good = new std::string(GoodManifest());
  Check(fuzz::BytesOrEdits({data, size}, *good));
  return 0;
}
