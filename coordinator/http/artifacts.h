// SPDX-License-Identifier: Apache-2.0
//
// GET and PUT of /artifact/<sha256> (docs/artifacts.md): who may upload is asked of the owner of
// the server, after the request's signature text was put together.
#ifndef LOCKSTEP_COORDINATOR_HTTP_ARTIFACTS_H_
#define LOCKSTEP_COORDINATOR_HTTP_ARTIFACTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/http/artifact_store.h"
#include "coordinator/http/router.h"
#include "net/signed_request.h"

namespace lockstep::coordinator {

struct UploadGrant {
  std::string owner;         // whose quota it is: an operator, however many keys it has
  uint64_t quota_bytes = 0;  // of all that the owner has in the store
};

struct UploadRules {
  std::string audience;  // the origin of this server's log
  // Checks that `signature.signature` is that of `signature.key` over `text`, and what the key may
  // do. Called by any thread. Unauthenticated: a bad signature. PermissionDenied: a key that is not
  // known, or may not upload. Unavailable: try later.
  std::function<absl::StatusOr<UploadGrant>(const net::RequestSignature& signature,
                                            const std::string& text)>
      authorize;
  absl::Duration clock_skew_max = absl::Minutes(5);  // either way
  size_t nonces_max = 100000;                        // remembered for twice that long
  const Clock* clock = &RealClock();
};

// The store outlives the server.
void ServeArtifacts(ArtifactStore& store, UploadRules rules, Router& router);
// Without uploads.
void ServeArtifacts(const ArtifactStore& store, Router& router);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_ARTIFACTS_H_
