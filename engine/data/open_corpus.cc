// SPDX-License-Identifier: Apache-2.0
//
// Putting sources of bytes together. See open_corpus.h.
#include "engine/data/open_corpus.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

absl::Status CheckLocation(const CorpusLocation& location) {
  if (location.places.empty()) {
    return absl::InvalidArgumentError("expected a folder or an address of a corpus");
  }
  const bool remote = std::any_of(location.places.begin(), location.places.end(), IsHttpAddress);
  if (!location.manifest && (remote || location.places.size() > 1 || !location.cache.empty())) {
    return absl::InvalidArgumentError(
        "expected the digest of the corpus's manifest: nothing else tells a server's bytes from "
        "good ones");
  }
  return absl::OkStatus();
}

absl::StatusOr<CorpusManifest> ReadManifest(const CorpusLocation& location,
                                            net::HttpClient& client) {
  std::vector<std::string> places = location.places;
  if (!location.cache.empty()) places.insert(places.begin(), location.cache);
  absl::Status last;
  for (const std::string& place : places) {
    absl::StatusOr<CorpusManifest> manifest =
        IsHttpAddress(place) ? FetchManifest(place, *location.manifest, client, location.names)
                             : ReadCorpusManifest(place, location.manifest);
    if (manifest.ok()) return manifest;
    // Never fill a folder that is another corpus's.
    if (place == location.cache && !absl::IsNotFound(manifest.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat(manifest.status().message(), "; choose another folder for the cache"));
    }
    last = manifest.status();
  }
  return last;
}

absl::Status StartCache(const std::string& folder, const CorpusManifest& manifest) {
  const std::string path = absl::StrCat(folder, "/", kCorpusManifestFile);
  std::error_code error;
  if (std::filesystem::exists(path, error)) return absl::OkStatus();
  std::filesystem::create_directories(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("create folder ", folder));
  return WriteFileDurably(path, AsBytes(SerializeManifest(manifest)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CorpusReader>> OpenCorpus(const CorpusLocation& location) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLocation(location));
  const auto client = std::make_shared<net::HttpClient>(location.http);
  LOCKSTEP_ASSIGN_OR_RETURN(CorpusManifest parsed, ReadManifest(location, *client));
  const auto manifest = std::make_shared<const CorpusManifest>(std::move(parsed));
  std::vector<std::shared_ptr<RangeSource>> sources;
  std::shared_ptr<FolderRangeSource> cache;
  if (!location.cache.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(StartCache(location.cache, *manifest));
    cache = std::make_shared<FolderRangeSource>(location.cache, manifest);
    sources.push_back(cache);
  }
  for (const std::string& place : location.places) {
    if (IsHttpAddress(place)) {
      sources.push_back(std::make_shared<HttpRangeSource>(place, manifest, client, location.names));
    } else {
      sources.push_back(std::make_shared<FolderRangeSource>(place, manifest));
    }
  }
  return CorpusReader::Open(
      manifest, std::make_shared<VerifiedRangeSource>(std::move(sources), manifest, cache));
}

}  // namespace lockstep::engine
