// SPDX-License-Identifier: Apache-2.0
//
// A client of the gRPC services that says what it is told to, honest or not. For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_TEST_CLIENT_H_
#define LOCKSTEP_COORDINATOR_TESTING_TEST_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "audit/testing/small_log.h"
#include "lockstep/v1/audit.grpc.pb.h"
#include "lockstep/v1/public.grpc.pb.h"
#include "lockstep/v1/trainer.grpc.pb.h"
#include "rpc/rpc_error.h"
#include "rpc/signed_request.h"

namespace lockstep::coordinator {

class TestClient {
 public:
  // `now_unix_ms`: the coordinator's time, as the client has it.
  TestClient(int public_port, int trainer_port, std::string origin,
             std::function<int64_t()> now_unix_ms, const std::string& host = "127.0.0.1")
      : public_channel_(ChannelTo(host, public_port)),
        trainer_channel_(ChannelTo(host, trainer_port)),
        audit_(v1::AuditService::NewStub(public_channel_)),
        open_(v1::PublicService::NewStub(public_channel_)),
        trainer_(v1::TrainerService::NewStub(trainer_channel_)),
        origin_(std::move(origin)),
        now_unix_ms_(std::move(now_unix_ms)) {}

  // One call with a deadline; its error as the client sees it.
  template <typename Response, typename Stub, typename Request>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return rpc::FromGrpc(status);
    return response;
  }
  // Of AuditService, signed by test key `key`, with a header of its own unless it has one.
  template <typename Response, typename Payload>
  absl::StatusOr<Response> Signed(const char* method, int key, Payload payload) {
    if (!payload.has_header()) *payload.mutable_header() = Header(key);
    return Send<Response>(rpc::SignRequest(
        audit::TestKey(key), absl::StrCat("/lockstep.v1.AuditService/", method), origin_, payload));
  }
  // As it is; the response says which method.
  template <typename Response>
  absl::StatusOr<Response> Send(const v1::SignedRequest& request) {
    using Audit = v1::AuditService::Stub;
    if constexpr (std::is_same_v<Response, v1::AcquireLeaseResponse>) {
      return Call<Response>(*audit_, &Audit::AcquireLease, request);
    } else if constexpr (std::is_same_v<Response, v1::HeartbeatResponse>) {
      return Call<Response>(*audit_, &Audit::Heartbeat, request);
    } else if constexpr (std::is_same_v<Response, v1::ReleaseLeaseResponse>) {
      return Call<Response>(*audit_, &Audit::ReleaseLease, request);
    } else if constexpr (std::is_same_v<Response, v1::SubmitOpeningResponse>) {
      return Call<Response>(*audit_, &Audit::SubmitOpening, request);
    } else {
      return Call<Response>(*audit_, &Audit::OfferState, request);
    }
  }

  v1::RequestHeader Header(int key) {
    v1::RequestHeader header;
    const Digest id = audit::TestDigest(absl::StrCat("request of ", key), ++requests_);
    header.set_request_id(id.bytes.data(), 16);
    header.set_attempt_id(Attempt(key));
    header.set_time_ms(now_unix_ms_());
    return header;
  }
  std::string Attempt(int key) const {
    const Digest attempt = audit::TestDigest(attempt_, static_cast<uint64_t>(key));
    return std::string(attempt.bytes.begin(), attempt.bytes.begin() + 16);
  }
  // Request ids are counted from here, and so are those of no other client of the key.
  void SetRequests(uint64_t requests) { requests_ = requests; }
  void SetAttempt(std::string attempt) { attempt_ = std::move(attempt); }

  absl::StatusOr<v1::SubmitKeyEventResponse> SubmitKey(const audit::KeyEvent& event,
                                                       const std::vector<int>& keys) {
    v1::SubmitKeyEventRequest request;
    request.set_envelope(audit::TestEntry(event, keys));
    return Call<v1::SubmitKeyEventResponse>(*audit_, &v1::AuditService::Stub::SubmitKeyEvent,
                                            request);
  }
  absl::StatusOr<v1::AcquireLeaseResponse> Acquire(int key, uint32_t steps_max = 0) {
    v1::AcquireLeaseRequest request;
    v1::Capabilities& machine = *request.mutable_capabilities();
    machine.set_backend_class("x86-avx2");
    machine.set_memory_bytes(uint64_t{1} << 40);
    machine.set_disk_bytes(uint64_t{1} << 40);
    machine.set_tokens_per_second(1e9);
    request.set_steps_max(steps_max);
    return Signed<v1::AcquireLeaseResponse>("AcquireLease", key, request);
  }
  // An envelope, as if test key `key` had signed it.
  v1::SubmitAttestationRequest Attestation(const std::string& envelope, int key) const {
    const Ed25519PublicKey signer = audit::TestPublicKey(key);
    v1::SubmitAttestationRequest request;
    request.set_public_key(signer.bytes.data(), signer.bytes.size());
    request.set_attempt_id(Attempt(key));
    request.set_envelope(envelope);
    return request;
  }
  absl::StatusOr<v1::SubmitAttestationResponse> Submit(const std::string& envelope, int key) {
    return Call<v1::SubmitAttestationResponse>(*audit_, &v1::AuditService::Stub::SubmitAttestation,
                                               Attestation(envelope, key));
  }
  absl::StatusOr<v1::PublishRecordsResponse> Publish(const Digest& run,
                                                     const std::vector<std::string>& envelopes) {
    v1::PublishRecordsRequest request;
    request.set_run_id(run.bytes.data(), run.bytes.size());
    for (const std::string& envelope : envelopes) request.add_envelopes(envelope);
    return Call<v1::PublishRecordsResponse>(*trainer_, &v1::TrainerService::Stub::PublishRecords,
                                            request);
  }

  v1::AuditService::Stub& audit() { return *audit_; }
  v1::PublicService::Stub& open() { return *open_; }
  v1::TrainerService::Stub& trainer() { return *trainer_; }
  const std::shared_ptr<grpc::Channel>& public_channel() const { return public_channel_; }

 private:
  static std::shared_ptr<grpc::Channel> ChannelTo(const std::string& host, int port) {
    grpc::ChannelArguments arguments;
    // Connections of its own, that come back at once after a server was killed.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    return grpc::CreateCustomChannel(absl::StrCat(host, ":", port),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  std::shared_ptr<grpc::Channel> public_channel_;
  std::shared_ptr<grpc::Channel> trainer_channel_;
  std::unique_ptr<v1::AuditService::Stub> audit_;
  std::unique_ptr<v1::PublicService::Stub> open_;
  std::unique_ptr<v1::TrainerService::Stub> trainer_;
  const std::string origin_;
  const std::function<int64_t()> now_unix_ms_;
  std::string attempt_ = "attempt 1";
  uint64_t requests_ = 0;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_TEST_CLIENT_H_
