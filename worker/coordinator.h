// SPDX-License-Identifier: Apache-2.0
//
// A coordinator as the worker sees it: the calls of AuditService, without how they get there
// (grpc_coordinator.h), so that the rest can be tested against one made up.
#ifndef LOCKSTEP_WORKER_COORDINATOR_H_
#define LOCKSTEP_WORKER_COORDINATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/log/signed_note.h"
#include "lockstep/v1/audit.pb.h"

namespace lockstep::worker {

struct ServerInfo {
  std::string origin;      // of its log, and audience of signed requests
  audit::NoteKey log_key;  // of that name
  std::string artifact_url;
  std::string version;
};

// Errors are the service's (proto/lockstep/v1/audit.proto), with its reasons (rpc::ReasonOf).
// Unavailable: it may work later. Any thread may call.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  // Who it is; before anything else. FailedPrecondition if that changed since the last time:
  // another log under the same address is another coordinator, and what was promised by the first
  // would not be kept by it.
  virtual absl::StatusOr<ServerInfo> Connect() = 0;

  virtual absl::StatusOr<v1::SubmitKeyEventResponse> SubmitKeyEvent(
      const v1::SubmitKeyEventRequest& request) = 0;
  // The headers of these are filled in on the way, and the key and attempt of an attestation.
  virtual absl::StatusOr<v1::AcquireLeaseResponse> AcquireLease(
      const v1::AcquireLeaseRequest& request) = 0;
  virtual absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<v1::ReleaseLeaseResponse> ReleaseLease(
      const v1::ReleaseLeaseRequest& request) = 0;
  virtual absl::StatusOr<v1::SubmitAttestationResponse> SubmitAttestation(
      const v1::SubmitAttestationRequest& request) = 0;
  virtual absl::StatusOr<v1::SubmitOpeningResponse> SubmitOpening(
      const v1::SubmitOpeningRequest& request) = 0;
  virtual absl::StatusOr<v1::OfferStateResponse> OfferState(
      const v1::OfferStateRequest& request) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COORDINATOR_H_
