// SPDX-License-Identifier: Apache-2.0
//
// Gives a coordinator an artifact, part by part, going on where an earlier try, or an earlier
// process, ended. The protocol: docs/artifacts.md.
#ifndef LOCKSTEP_NET_ARTIFACT_UPLOAD_H_
#define LOCKSTEP_NET_ARTIFACT_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/sha256.h"
#include "net/http_client.h"
#include "net/signed_request.h"

namespace lockstep::net {

struct UploadOptions {
  std::string address;   // "https://coordinator.example": the path /artifact/... goes behind it
  std::string audience;  // the origin of that coordinator's log
  RequestSigner signer;
  uint64_t part_bytes = uint64_t{64} << 20;  // in one request, at least 1
  // Bytes that the server has on its disk, and how many there will be. May be empty.
  std::function<void(uint64_t have, uint64_t total)> progress = nullptr;
};

// OK once the server has the whole artifact and has found its digest right; also if it had it
// already. `path` is not to change meanwhile. `client` says how often, with what waits and at what
// speed.
//
// Errors name the address. Unavailable: it may work later. PermissionDenied: the signature, the key
// or the clock is refused. ResourceExhausted: too large, or over a quota. DataLoss: the server got
// other bytes than those of this digest. FailedPrecondition: any other answer. Cancelled. Those of
// reading the file.
absl::Status UploadArtifact(HttpClient& client, const UploadOptions& options, const Digest& sha256,
                            const std::string& path);

}  // namespace lockstep::net

#endif  // LOCKSTEP_NET_ARTIFACT_UPLOAD_H_
