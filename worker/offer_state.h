// SPDX-License-Identifier: Apache-2.0
//
// A state that this worker has reached, offered to those who come after it: announced under the
// worker's key, its files uploaded by digest. Whoever starts from it checks it against the chain.
#ifndef LOCKSTEP_WORKER_OFFER_STATE_H_
#define LOCKSTEP_WORKER_OFFER_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "base/ed25519.h"
#include "net/http_client.h"
#include "worker/coordinator.h"

namespace lockstep::worker {

// folder: a whole checkpoint. Uploads what the coordinator asks for of its files, and nothing else.
// Errors of the call and of net::UploadArtifact; again later is fine.
absl::Status OfferState(Coordinator& coordinator, const ServerInfo& server, net::HttpClient& client,
                        const Ed25519PrivateKey& key, const std::string& folder);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_OFFER_STATE_H_
