// SPDX-License-Identifier: Apache-2.0
//
// Signed requests in, answers out.

#include "coordinator/service/audit_service.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/status.h"
#include "coordinator/service/wire.h"
#include "rpc/rpc_error.h"
#include "rpc/signed_request.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kIdBytes = 16;
constexpr int kOpeningsMax = 16;
constexpr int kRunsMax = 64;
constexpr size_t kDetailBytesMax = 1'024;

absl::StatusOr<std::string> IdFromWire(const std::string& bytes, absl::string_view field) {
  if (bytes.size() == kIdBytes) return HexEncode(AsBytes(bytes));
  return RequestInvalid(
      absl::StrCat(field, ": expected ", kIdBytes, " bytes; found ", bytes.size()));
}

int64_t Clamped(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

absl::StatusOr<Capabilities> CapabilitiesFromWire(const v1::Capabilities& wire) {
  Capabilities machine{.backend_class = wire.backend_class(),
                       .memory_bytes = Clamped(wire.memory_bytes()),
                       .disk_bytes = Clamped(wire.disk_bytes()),
                       .tokens_per_second = wire.tokens_per_second(),
                       .runs = {}};
  if (!std::isfinite(machine.tokens_per_second) || machine.tokens_per_second < 0) {
    return RequestInvalid("capabilities.tokens_per_second: expected a number from 0");
  }
  if (wire.runs_size() > kRunsMax) {
    return RequestInvalid(absl::StrCat("capabilities.runs: at most ", kRunsMax));
  }
  for (const std::string& bytes : wire.runs()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run, DigestFromWire(bytes, "capabilities.runs"));
    machine.runs.push_back(run);
  }
  return machine;
}

ReleaseReason ReasonFromWire(v1::ReleaseLeaseRequest::Reason reason) {
  switch (reason) {
    case v1::ReleaseLeaseRequest::REASON_FINISHED:
      return ReleaseReason::kFinished;
    case v1::ReleaseLeaseRequest::REASON_INCONCLUSIVE:
      return ReleaseReason::kInconclusive;
    default:
      return ReleaseReason::kCanceled;
  }
}

}  // namespace

template <typename Payload>
absl::StatusOr<Caller> AuditService::OpenRequest(const v1::SignedRequest& request,
                                                 const char* method, const std::string& address,
                                                 Payload* payload) const {
  const std::string name = absl::StrCat("/lockstep.v1.AuditService/", method);
  Caller caller;
  LOCKSTEP_ASSIGN_OR_RETURN(caller.key,
                            rpc::VerifyRequest(request, name, coordinator_.origin(), payload));
  LOCKSTEP_ASSIGN_OR_RETURN(caller.request_id,
                            IdFromWire(payload->header().request_id(), "header.request_id"));
  LOCKSTEP_ASSIGN_OR_RETURN(caller.attempt_id,
                            IdFromWire(payload->header().attempt_id(), "header.attempt_id"));
  caller.address = address;
  caller.time_unix_ms = payload->header().time_ms();
  const std::string separated = absl::StrCat(name, std::string(1, '\0'));
  caller.fingerprint = Sha256({AsBytes(separated), AsBytes(request.payload())});
  return caller;
}

grpc::Status AuditService::GetServerInfo(grpc::ServerContext* context,
                                         const v1::GetServerInfoRequest* /*request*/,
                                         v1::GetServerInfoResponse* response) {
  return calls_.Serve(context, "GetServerInfo", [&](const std::string&) {
    response->set_origin(coordinator_.origin());
    response->set_log_key(coordinator_.log_key().ToText());
    response->set_server_time_ms(coordinator_.UnixMs());
    response->set_version(options_.version);
    response->set_artifact_url(options_.artifact_url);
    return absl::OkStatus();
  });
}

absl::Status AuditService::CheckBudget(const std::string& envelope, const std::string& address) {
  const absl::StatusOr<audit::LogEntry> entry = audit::LogEntry::Parse(envelope);
  // What is no key event costs nothing; the coordinator says so.
  if (!entry.ok() || entry->kind() != audit::EntryKind::kKey) return absl::OkStatus();
  const bool is_operator =
      std::holds_alternative<audit::OperatorEvent>(std::get<audit::KeyEvent>(entry->payload()));
  if ((is_operator ? operator_events_ : key_events_).Take(address)) return absl::OkStatus();
  const double per_second = is_operator ? options_.operator_events.calls_per_second
                                        : options_.key_events.calls_per_second;
  return rpc::WithReason(
      absl::ResourceExhaustedError("too many key events from this address within the hour"),
      "RATE_LIMITED", {{"retry_after_ms", absl::StrCat(static_cast<int64_t>(1'000 / per_second))}});
}

grpc::Status AuditService::SubmitKeyEvent(grpc::ServerContext* context,
                                          const v1::SubmitKeyEventRequest* request,
                                          v1::SubmitKeyEventResponse* response) {
  return calls_.Serve(context, "SubmitKeyEvent", [&](const std::string& address) -> absl::Status {
    LOCKSTEP_RETURN_IF_ERROR(CheckBudget(request->envelope(), address));
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::EntryRef entry,
                              coordinator_.SubmitKeyEvent(request->envelope()));
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), MakeReceipt(coordinator_, entry));
    return absl::OkStatus();
  });
}

grpc::Status AuditService::AcquireLease(grpc::ServerContext* context,
                                        const v1::SignedRequest* request,
                                        v1::AcquireLeaseResponse* response) {
  return calls_.Serve(context, "AcquireLease", [&](const std::string& address) -> absl::Status {
    v1::AcquireLeaseRequest payload;
    LOCKSTEP_ASSIGN_OR_RETURN(const Caller caller,
                              OpenRequest(*request, "AcquireLease", address, &payload));
    LOCKSTEP_ASSIGN_OR_RETURN(const Capabilities machine,
                              CapabilitiesFromWire(payload.capabilities()));
    LOCKSTEP_ASSIGN_OR_RETURN(const AcquireAnswer answer,
                              coordinator_.AcquireLease(caller, machine, payload.steps_max()));
    response->set_server_time_ms(coordinator_.UnixMs());
    response->set_retry_after_ms(answer.retry_after_ms);
    response->set_no_work_reason(answer.no_work_reason);
    if (!answer.lease) return absl::OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_lease(), LeaseToWire(coordinator_, *answer.lease));
    return absl::OkStatus();
  });
}

grpc::Status AuditService::Heartbeat(grpc::ServerContext* context, const v1::SignedRequest* request,
                                     v1::HeartbeatResponse* response) {
  return calls_.Serve(context, "Heartbeat", [&](const std::string& address) -> absl::Status {
    v1::HeartbeatRequest payload;
    LOCKSTEP_ASSIGN_OR_RETURN(const Caller caller,
                              OpenRequest(*request, "Heartbeat", address, &payload));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string lease_id,
                              IdFromWire(payload.lease_id(), "lease_id"));
    LOCKSTEP_ASSIGN_OR_RETURN(const bool go_on, coordinator_.Heartbeat(caller, lease_id));
    response->set_go_on(go_on);
    response->set_server_time_ms(coordinator_.UnixMs());
    return absl::OkStatus();
  });
}

grpc::Status AuditService::ReleaseLease(grpc::ServerContext* context,
                                        const v1::SignedRequest* request,
                                        v1::ReleaseLeaseResponse* /*response*/) {
  return calls_.Serve(context, "ReleaseLease", [&](const std::string& address) -> absl::Status {
    v1::ReleaseLeaseRequest payload;
    LOCKSTEP_ASSIGN_OR_RETURN(const Caller caller,
                              OpenRequest(*request, "ReleaseLease", address, &payload));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string lease_id,
                              IdFromWire(payload.lease_id(), "lease_id"));
    if (payload.detail().size() > kDetailBytesMax) {
      return RequestInvalid(absl::StrCat("detail: at most ", kDetailBytesMax, " bytes"));
    }
    return coordinator_.ReleaseLease(caller, lease_id, ReasonFromWire(payload.reason()),
                                     payload.detail());
  });
}

grpc::Status AuditService::SubmitAttestation(grpc::ServerContext* context,
                                             const v1::SubmitAttestationRequest* request,
                                             v1::SubmitAttestationResponse* response) {
  return calls_.Serve(context, "SubmitAttestation", [&](const std::string&) -> absl::Status {
    const absl::StatusOr<Ed25519PublicKey> key =
        Ed25519PublicKey::FromBytes(AsBytes(request->public_key()));
    if (!key.ok()) return RequestInvalid(absl::StrCat("public_key: ", key.status().message()));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string attempt_id,
                              IdFromWire(request->attempt_id(), "attempt_id"));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const AttestationAnswer answer,
        coordinator_.SubmitAttestation(*key, attempt_id, request->envelope()));
    if (!answer.entry) return absl::OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(),
                              MakeReceipt(coordinator_, *answer.entry));
    if (answer.challenge) {
      response->set_challenge(answer.challenge->data(), answer.challenge->size());
    }
    return absl::OkStatus();
  });
}

grpc::Status AuditService::SubmitOpening(grpc::ServerContext* context,
                                         const v1::SignedRequest* request,
                                         v1::SubmitOpeningResponse* response) {
  return calls_.Serve(context, "SubmitOpening", [&](const std::string& address) -> absl::Status {
    v1::SubmitOpeningRequest payload;
    LOCKSTEP_ASSIGN_OR_RETURN(const Caller caller,
                              OpenRequest(*request, "SubmitOpening", address, &payload));
    const int count = payload.envelopes_size();
    if (count == 0 || count > kOpeningsMax) {
      return RequestInvalid(
          absl::StrCat("envelopes: expected 1 to ", kOpeningsMax, "; found ", count));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::EntryRef last,
                              coordinator_.SubmitOpenings(caller, {payload.envelopes().begin(),
                                                                   payload.envelopes().end()}));
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), MakeReceipt(coordinator_, last));
    return absl::OkStatus();
  });
}

grpc::Status AuditService::OfferState(grpc::ServerContext* context,
                                      const v1::SignedRequest* request,
                                      v1::OfferStateResponse* response) {
  return calls_.Serve(context, "OfferState", [&](const std::string& address) -> absl::Status {
    v1::OfferStateRequest payload;
    LOCKSTEP_ASSIGN_OR_RETURN(const Caller caller,
                              OpenRequest(*request, "OfferState", address, &payload));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ArtifactSource> artifacts,
                              ArtifactsFromWire(payload.artifacts()));
    LOCKSTEP_ASSIGN_OR_RETURN(const OfferAnswer answer,
                              coordinator_.OfferState(caller, payload.envelope(), artifacts));
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(),
                              MakeReceipt(coordinator_, answer.entry));
    for (const Digest& digest : answer.upload) response->add_upload(ToWire(digest));
    return absl::OkStatus();
  });
}

}  // namespace lockstep::coordinator
