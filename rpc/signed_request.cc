// SPDX-License-Identifier: Apache-2.0
//
// What is signed, and the check of it.
#include "rpc/signed_request.h"

#include "base/bytes.h"
#include "rpc/rpc_error.h"

namespace lockstep::rpc {
namespace {

std::string SignedBytes(absl::string_view method, absl::string_view origin,
                        absl::string_view payload) {
  std::string bytes = "lockstep-request-v1";
  for (const absl::string_view part : {method, origin, payload}) {
    bytes += '\0';
    bytes.append(part.data(), part.size());
  }
  return bytes;
}

absl::Status Invalid(absl::string_view message) {
  return WithReason(absl::InvalidArgumentError(message), "SIGNATURE_INVALID");
}

}  // namespace

v1::SignedRequest SignRequest(const Ed25519PrivateKey& key, absl::string_view method,
                              absl::string_view origin,
                              const google::protobuf::MessageLite& payload) {
  v1::SignedRequest request;
  request.set_payload(payload.SerializeAsString());
  const std::string bytes = SignedBytes(method, origin, request.payload());
  const Ed25519Signature signature = key.Sign(AsBytes(bytes));
  request.set_public_key(key.public_key().bytes.data(), key.public_key().bytes.size());
  request.set_signature(signature.data(), signature.size());
  return request;
}

absl::StatusOr<Ed25519PublicKey> VerifyRequest(const v1::SignedRequest& request,
                                               absl::string_view method, absl::string_view origin,
                                               google::protobuf::MessageLite* payload) {
  const absl::StatusOr<Ed25519PublicKey> key =
      Ed25519PublicKey::FromBytes(AsBytes(request.public_key()));
  if (!key.ok()) return Invalid(key.status().message());
  const std::string bytes = SignedBytes(method, origin, request.payload());
  if (!VerifyEd25519(*key, AsBytes(bytes), AsBytes(request.signature()))) {
    return Invalid("expected a signature by public_key over this method, origin and payload");
  }
  if (!payload->ParseFromString(request.payload())) {
    return Invalid("expected a payload of the message that the method's comment names");
  }
  return *key;
}

}  // namespace lockstep::rpc
