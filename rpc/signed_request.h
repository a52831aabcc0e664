// SPDX-License-Identifier: Apache-2.0
//
// Requests that a key stands behind, whatever carries them (proto/lockstep/v1/common.proto).
#ifndef LOCKSTEP_RPC_SIGNED_REQUEST_H_
#define LOCKSTEP_RPC_SIGNED_REQUEST_H_

#include <google/protobuf/message_lite.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ed25519.h"
#include "lockstep/v1/common.pb.h"

namespace lockstep::rpc {

// method: "/lockstep.v1.AuditService/AcquireLease"; origin: of the coordinator's log.
v1::SignedRequest SignRequest(const Ed25519PrivateKey& key, absl::string_view method,
                              absl::string_view origin,
                              const google::protobuf::MessageLite& payload);

// The key that signed, with the payload read into `payload`. InvalidArgument with the reason
// SIGNATURE_INVALID: a key that is none, a signature that does not hold for this method and origin,
// or a payload that cannot be read. Which keys are registered is the caller's to know.
absl::StatusOr<Ed25519PublicKey> VerifyRequest(const v1::SignedRequest& request,
                                               absl::string_view method, absl::string_view origin,
                                               google::protobuf::MessageLite* payload);

}  // namespace lockstep::rpc

#endif  // LOCKSTEP_RPC_SIGNED_REQUEST_H_
