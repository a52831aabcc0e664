// SPDX-License-Identifier: Apache-2.0
//
// GET and PUT of /artifact/<sha256> (docs/artifacts.md): who may upload is asked of the owner of
// the server, after the request's signature text was put together.
#ifndef LOCKSTEP_COORDINATOR_HTTP_ARTIFACTS_H_
#define LOCKSTEP_COORDINATOR_HTTP_ARTIFACTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "coordinator/http/artifact_store.h"
#include "coordinator/http/router.h"
#include "net/signed_request.h"

namespace lockstep::coordinator {

struct UploadGrant {
  std::string owner;         // whose quota it is: an operator, however many keys it has
  uint64_t quota_bytes = 0;  // of all that the owner has in the store
  bool trainer = false;      // of a run, who is counted apart
};

struct UploadRules {
  std::string audience;  // the origin of this server's log
  // Checks that `signature.signature` is that of `signature.key` over `text`, and what the key may
  // do. Called by any thread. Unauthenticated: a bad signature. PermissionDenied: a key that is not
  // known, or may not upload. Unavailable: try later.
  std::function<absl::StatusOr<UploadGrant>(const net::RequestSignature& signature,
                                            const std::string& text)>
      authorize;
  // Whether the key may bring this artifact, of so many bytes: after `authorize`, whose errors it
  // has.
  std::function<absl::Status(const std::array<uint8_t, 32>& key, const Digest& digest,
                             uint64_t bytes)>
      wants = [](const auto&, const Digest&, uint64_t) { return absl::OkStatus(); };
  absl::Duration clock_skew_max = absl::Minutes(5);  // either way
  // Remembered for twice that long: of trainers so many, and of workers; and of one owner.
  size_t nonces_max = 100000;
  size_t nonces_per_owner_max = 10000;
  const Clock* clock = &RealClock();
};

// The store outlives the server.
void ServeArtifacts(ArtifactStore& store, UploadRules rules, Router& router);
// Without uploads.
void ServeArtifacts(const ArtifactStore& store, Router& router);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_ARTIFACTS_H_
