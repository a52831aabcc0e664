// SPDX-License-Identifier: Apache-2.0
//
// Addresses of a mirror's files. See http_range_source.h.
#include "engine/data/http_range_source.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/bytes.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

std::string WithoutSlash(absl::string_view address) {
  return std::string(absl::StripSuffix(address, "/"));
}

}  // namespace

HttpRangeSource::HttpRangeSource(std::string address,
                                 std::shared_ptr<const CorpusManifest> manifest,
                                 std::shared_ptr<net::HttpClient> client, MirrorNames names)
    : address_(WithoutSlash(address)),
      manifest_(std::move(manifest)),
      client_(std::move(client)),
      names_(names) {}

std::string HttpRangeSource::Locate(const ShardFileId& id) const {
  return absl::StrCat(address_, "/",
                      names_ == MirrorNames::kPaths ? NameOf(*manifest_, id)
                                                    : EntryOf(*manifest_, id).sha256.ToHex());
}

absl::Status HttpRangeSource::Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) {
  return client_->ReadRange(Locate(id), begin, EntryOf(*manifest_, id).bytes, out);
}

bool IsHttpAddress(absl::string_view text) {
  return absl::StartsWithIgnoreCase(text, "http://") ||
         absl::StartsWithIgnoreCase(text, "https://");
}

absl::StatusOr<CorpusManifest> FetchManifest(const std::string& address, const Digest& digest,
                                             net::HttpClient& client, MirrorNames names) {
  const std::string url = absl::StrCat(
      WithoutSlash(address), "/",
      names == MirrorNames::kPaths ? std::string(kCorpusManifestFile) : digest.ToHex());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, client.ReadFile(url, kCorpusManifestBytesMax));
  LOCKSTEP_RETURN_IF_ERROR(CheckManifestDigest(bytes, digest), url);
  LOCKSTEP_ASSIGN_OR_RETURN(CorpusManifest manifest, ParseCorpusManifest(bytes), url);
  return manifest;
}

}  // namespace lockstep::engine
