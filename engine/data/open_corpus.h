// SPDX-License-Identifier: Apache-2.0
//
// A corpus from wherever it lies: folders, web servers, and a folder that keeps what was fetched.
#ifndef LOCKSTEP_ENGINE_DATA_OPEN_CORPUS_H_
#define LOCKSTEP_ENGINE_DATA_OPEN_CORPUS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "engine/data/http_range_source.h"
#include "engine/data/shard_reader.h"
#include "net/http_client.h"

namespace lockstep::engine {

struct CorpusLocation {
  // Folders, and addresses of http or https; asked in this order for each piece.
  std::vector<std::string> places = {};
  // Which corpus: ManifestDigest. Only a single folder needs none.
  std::optional<Digest> manifest = std::nullopt;
  // A folder, made if need be, for what comes over the network; it is asked first, and becomes a
  // corpus folder with holes. Empty: none.
  std::string cache = {};
  MirrorNames names = MirrorNames::kPaths;  // of addresses
  net::HttpOptions http = {};
};

// The manifest of the first place that has it; all bytes are checked as they are read. Errors:
// InvalidArgument for a location that makes no sense, FailedPrecondition for a cache of another
// corpus, those of ReadCorpusManifest and FetchManifest.
absl::StatusOr<std::shared_ptr<const CorpusReader>> OpenCorpus(const CorpusLocation& location);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_OPEN_CORPUS_H_
