// SPDX-License-Identifier: Apache-2.0
//
// AuditService (proto/lockstep/v1/audit.proto) over the coordinator: signed requests opened,
// answers with receipts made.

#ifndef LOCKSTEP_COORDINATOR_SERVICE_AUDIT_SERVICE_H_
#define LOCKSTEP_COORDINATOR_SERVICE_AUDIT_SERVICE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/service/address_limiter.h"
#include "coordinator/service/calls.h"
#include "lockstep/v1/audit.grpc.pb.h"

namespace lockstep::coordinator {

struct AuditServiceOptions {
  std::string version;       // of the coordinator
  std::string artifact_url;  // where its HTTP server is reached; may be empty
  // Entries of the log that strangers make, by address: operators, and all other key events.
  AddressLimits operator_events = {.calls_per_second = 20.0 / 3'600, .calls_at_once = 20};
  AddressLimits key_events = {.calls_per_second = 1'000.0 / 3'600, .calls_at_once = 1'000};
};

class AuditService final : public v1::AuditService::Service {
 public:
  // Both outlive the service.
  AuditService(Coordinator& coordinator, Calls& calls, AuditServiceOptions options)
      : coordinator_(coordinator),
        calls_(calls),
        options_(std::move(options)),
        operator_events_(options_.operator_events),
        key_events_(options_.key_events) {}

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::GetServerInfoResponse* response) override;
  grpc::Status SubmitKeyEvent(grpc::ServerContext* context,
                              const v1::SubmitKeyEventRequest* request,
                              v1::SubmitKeyEventResponse* response) override;
  grpc::Status AcquireLease(grpc::ServerContext* context, const v1::SignedRequest* request,
                            v1::AcquireLeaseResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext* context, const v1::SignedRequest* request,
                         v1::HeartbeatResponse* response) override;
  grpc::Status ReleaseLease(grpc::ServerContext* context, const v1::SignedRequest* request,
                            v1::ReleaseLeaseResponse* response) override;
  grpc::Status SubmitAttestation(grpc::ServerContext* context,
                                 const v1::SubmitAttestationRequest* request,
                                 v1::SubmitAttestationResponse* response) override;
  grpc::Status SubmitOpening(grpc::ServerContext* context, const v1::SignedRequest* request,
                             v1::SubmitOpeningResponse* response) override;
  grpc::Status OfferState(grpc::ServerContext* context, const v1::SignedRequest* request,
                          v1::OfferStateResponse* response) override;

 private:
  template <typename Payload>
  absl::StatusOr<Caller> OpenRequest(const v1::SignedRequest& request, const char* method,
                                     const std::string& address, Payload* payload) const;

  Coordinator& coordinator_;
  Calls& calls_;
  // Whether an address may add another key event: its envelope's.
  absl::Status CheckBudget(const std::string& envelope, const std::string& address);

  const AuditServiceOptions options_;
  AddressLimiter operator_events_;
  AddressLimiter key_events_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVICE_AUDIT_SERVICE_H_
