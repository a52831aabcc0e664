// SPDX-License-Identifier: Apache-2.0
//
// One artifact, by its SHA-256, from any of several mirrors that nobody trusts: in full, or taken
// up where an earlier try, or an earlier process, ended. Where files are kept is
// artifact_cache.h's business; what the other side looks like, docs/artifacts.md.
#ifndef LOCKSTEP_NET_ARTIFACT_FETCH_H_
#define LOCKSTEP_NET_ARTIFACT_FETCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/sha256.h"
#include "net/http_client.h"

namespace lockstep::net {

struct ArtifactId {
  Digest sha256;
  std::optional<uint64_t> bytes = std::nullopt;  // nullopt: not known
};

struct FetchOptions {
  // An artifact lies at MIRROR/<64 digits>: "https://coordinator.example/artifact". Asked in this
  // order; one that fails in a way that may pass is asked again after the others.
  std::vector<std::string> mirrors;
  uint64_t bytes_max = uint64_t{1} << 40;  // of an artifact whose size is not known
  // Bytes that are here, and how many there will be (0: not known yet). May be empty.
  std::function<void(uint64_t have, uint64_t total)> progress = nullptr;
};

// What the name of a file in the making ends in.
inline constexpr char kPartialSuffix[] = ".partial";

// Puts the artifact at `path`, brought to the disk, after its digest was found right; until then
// bytes are in path.partial, which stays after an error, and is gone on with next time. Bytes of
// several mirrors may be joined; if the whole is then wrong it is begun again from one mirror at a
// time, so that the one with wrong bytes is found and not asked again.
//
// `client` says how often, with what waits and at what speed; it should not follow redirects.
//
// Errors name the artifact and each mirror's. Unavailable: it may work later. NotFound: no mirror
// has it. DataLoss: mirrors have other bytes under this name. OutOfRange: larger than bytes_max.
// Cancelled. Those of files (ResourceExhausted: the disk is full).
absl::Status FetchArtifact(HttpClient& client, const FetchOptions& options,
                           const ArtifactId& artifact, const std::string& path);

}  // namespace lockstep::net

#endif  // LOCKSTEP_NET_ARTIFACT_FETCH_H_
