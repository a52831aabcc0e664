// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: corpus.toml. Whatever it says, it is read or refused with a message; what was read
// keeps to the bounds that the rest relies on.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/logging.h"
#include "engine/corpus/corpus_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::engine;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<CorpusConfig> config = ParseCorpusConfig(text, "/folder");
  if (!config.ok()) {
    LOCKSTEP_CHECK(absl::IsInvalidArgument(config.status()));
    LOCKSTEP_CHECK(!config.status().message().empty());
    return 0;
  }
  LOCKSTEP_CHECK(!config->sources.empty());
  for (const SourceConfig& source : config->sources) {
    LOCKSTEP_CHECK(!source.name.empty() && source.name.find('/') == std::string::npos);
    LOCKSTEP_CHECK(!source.licence.empty() && !source.paths.empty());
    LOCKSTEP_CHECK(source.record_bytes_max >= 64 && source.compression_ratio_max >= 2);
    LOCKSTEP_CHECK(source.over_long == OverLong::kDrop || source.bytes_max >= 64);
    LOCKSTEP_CHECK(source.Fingerprint() == source.Fingerprint());
  }
  return 0;
}
