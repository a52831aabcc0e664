// SPDX-License-Identifier: Apache-2.0
//
// What a stranger can check of the public files of a log, written from c2sp.org/tlog-tiles,
// tlog-checkpoint and RFC 6962 alone: it shares no code with the writer but SHA-256, base64 and the
// verification of a signature. For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_LOG_CHECKER_H_
#define LOCKSTEP_COORDINATOR_TESTING_LOG_CHECKER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ed25519.h"

namespace lockstep::coordinator {

// The entries of the log in `directory`, if its checkpoint is signed by the key, and every bundle
// and tile of its size is there with the bytes that the entries give, up to the root.
absl::StatusOr<std::vector<std::string>> CheckLog(const std::string& directory,
                                                  const std::string& origin,
                                                  const Ed25519PublicKey& key);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_LOG_CHECKER_H_
