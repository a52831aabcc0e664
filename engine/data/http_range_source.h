// SPDX-License-Identifier: Apache-2.0
//
// A corpus on a web server: any server that answers range requests over a copy of the corpus
// folder, or over files named by their SHA-256. To be read through a VerifiedRangeSource.
#ifndef LOCKSTEP_ENGINE_DATA_HTTP_RANGE_SOURCE_H_
#define LOCKSTEP_ENGINE_DATA_HTTP_RANGE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "engine/data/manifest.h"
#include "engine/data/range_source.h"
#include "net/http_client.h"

namespace lockstep::engine {

// How a mirror names files below its address.
enum class MirrorNames {
  kPaths,   // as in the corpus folder: "web/00042.tokens"
  kDigests  // SHA-256 of the file, in hexadecimal
};

// One request a Read. Errors: those of HttpClient.
class HttpRangeSource final : public RangeSource {
 public:
  // address: "https://host/path", with or without a slash at its end.
  HttpRangeSource(std::string address, std::shared_ptr<const CorpusManifest> manifest,
                  std::shared_ptr<net::HttpClient> client, MirrorNames names = MirrorNames::kPaths);
  absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) override;
  std::string Locate(const ShardFileId& id) const override;

 private:
  const std::string address_;
  const std::shared_ptr<const CorpusManifest> manifest_;
  const std::shared_ptr<net::HttpClient> client_;
  const MirrorNames names_;
};

bool IsHttpAddress(absl::string_view text);

// ADDRESS/manifest.json (or ADDRESS/DIGEST), which must have that digest: checked before anything
// in it is looked at.
absl::StatusOr<CorpusManifest> FetchManifest(const std::string& address, const Digest& digest,
                                             net::HttpClient& client,
                                             MirrorNames names = MirrorNames::kPaths);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_HTTP_RANGE_SOURCE_H_
