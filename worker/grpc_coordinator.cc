// SPDX-License-Identifier: Apache-2.0
//
// Calls over gRPC.
#include "worker/grpc_coordinator.h"

#include <grpcpp/grpcpp.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/status.h"
#include "lockstep/v1/audit.grpc.pb.h"
#include "rpc/address.h"
#include "rpc/rpc_error.h"
#include "rpc/signed_request.h"

namespace lockstep::worker {
namespace {

constexpr size_t kCertificatesBytesMax = size_t{4} << 20;
constexpr int kAnswerBytesMax = 64 << 20;  // a lease of thousands of records
// A request is signed anew once it is as old: the coordinator would find its time off at five.
constexpr absl::Duration kSignatureAgeMax = absl::Minutes(2);

class GrpcCoordinator final : public Coordinator {
 public:
  GrpcCoordinator(const Ed25519PrivateKey& key, const GrpcCoordinatorOptions& options,
                  const std::shared_ptr<grpc::Channel>& channel)
      : key_(key), options_(options), stub_(v1::AuditService::NewStub(channel)) {
    std::random_device device;
    chance_.seed((uint64_t{device()} << 32) ^ device());
  }

  absl::StatusOr<ServerInfo> Connect() override;

  absl::StatusOr<v1::SubmitKeyEventResponse> SubmitKeyEvent(
      const v1::SubmitKeyEventRequest& request) override {
    v1::SubmitKeyEventResponse response;
    LOCKSTEP_RETURN_IF_ERROR(Repeat([&](grpc::ClientContext* context) {
      return stub_->SubmitKeyEvent(context, request, &response);
    }));
    return response;
  }
  absl::StatusOr<v1::AcquireLeaseResponse> AcquireLease(
      const v1::AcquireLeaseRequest& request) override {
    auto response = CallSigned<v1::AcquireLeaseResponse>(
        "/lockstep.v1.AuditService/AcquireLease", request, &v1::AuditService::Stub::AcquireLease);
    if (response.ok()) SetServerTime(response->server_time_ms());
    return response;
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request) override {
    auto response = CallSigned<v1::HeartbeatResponse>("/lockstep.v1.AuditService/Heartbeat",
                                                      request, &v1::AuditService::Stub::Heartbeat);
    if (response.ok()) SetServerTime(response->server_time_ms());
    return response;
  }
  absl::StatusOr<v1::ReleaseLeaseResponse> ReleaseLease(
      const v1::ReleaseLeaseRequest& request) override {
    return CallSigned<v1::ReleaseLeaseResponse>("/lockstep.v1.AuditService/ReleaseLease", request,
                                                &v1::AuditService::Stub::ReleaseLease);
  }
  absl::StatusOr<v1::SubmitAttestationResponse> SubmitAttestation(
      const v1::SubmitAttestationRequest& request) override {
    v1::SubmitAttestationRequest whole = request;
    whole.set_public_key(key_.public_key().bytes.data(), key_.public_key().bytes.size());
    whole.set_attempt_id(options_.attempt_id);
    v1::SubmitAttestationResponse response;
    LOCKSTEP_RETURN_IF_ERROR(Repeat([&](grpc::ClientContext* context) {
      return stub_->SubmitAttestation(context, whole, &response);
    }));
    return response;
  }
  absl::StatusOr<v1::SubmitOpeningResponse> SubmitOpening(
      const v1::SubmitOpeningRequest& request) override {
    return CallSigned<v1::SubmitOpeningResponse>("/lockstep.v1.AuditService/SubmitOpening", request,
                                                 &v1::AuditService::Stub::SubmitOpening);
  }
  absl::StatusOr<v1::OfferStateResponse> OfferState(const v1::OfferStateRequest& request) override {
    return CallSigned<v1::OfferStateResponse>("/lockstep.v1.AuditService/OfferState", request,
                                              &v1::AuditService::Stub::OfferState);
  }

 private:
  template <class Response>
  using Method = grpc::Status (v1::AuditService::Stub::*)(grpc::ClientContext*,
                                                          const v1::SignedRequest&, Response*);
  using Try = std::function<grpc::Status(grpc::ClientContext* context)>;

  absl::Status Once(const Try& call);
  absl::Status Repeat(const Try& call);
  absl::Status Wait(absl::Duration duration);
  double Random();
  absl::StatusOr<std::string> Origin();
  void SetServerTime(int64_t ms);
  int64_t ServerTime();
  template <class Response, class Request>
  absl::StatusOr<Response> CallSigned(const char* method, const Request& request,
                                      Method<Response> call);

  const Ed25519PrivateKey& key_;
  const GrpcCoordinatorOptions options_;
  const std::unique_ptr<v1::AuditService::Stub> stub_;
  absl::Mutex mutex_;
  std::optional<ServerInfo> info_ ABSL_GUARDED_BY(mutex_);
  std::optional<int64_t> server_time_ms_ ABSL_GUARDED_BY(mutex_);
  absl::Duration server_time_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  std::mt19937_64 chance_ ABSL_GUARDED_BY(mutex_);
};

absl::Status GrpcCoordinator::Once(const Try& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(options_.deadline));
  const grpc::Status status = call(&context);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    // Not the coordinator's answer, and so not one to try again at once.
    return rpc::WithReason(
        absl::UnavailableError(absl::StrCat(options_.address, " did not answer within ",
                                            absl::FormatDuration(options_.deadline))),
        "NO_ANSWER");
  }
  return WithContext(rpc::FromGrpc(status), options_.address);
}

absl::Status GrpcCoordinator::Wait(absl::Duration duration) {
  if (options_.sleep) {
    options_.sleep(duration);
  } else {
    const absl::Duration end = RealClock().Monotonic() + duration;
    for (absl::Duration left = duration; left > absl::ZeroDuration();
         left = end - RealClock().Monotonic()) {
      if (options_.interrupted && options_.interrupted()) break;
      std::this_thread::sleep_for(
          absl::ToChronoNanoseconds(std::min(left, absl::Milliseconds(100))));
    }
  }
  if (options_.interrupted && options_.interrupted()) return absl::CancelledError("interrupted");
  return absl::OkStatus();
}

double GrpcCoordinator::Random() {
  if (options_.random) return options_.random();
  const absl::MutexLock lock(&mutex_);
  return std::uniform_real_distribution<double>()(chance_);
}

absl::Status GrpcCoordinator::Repeat(const Try& call) {
  Backoff backoff(options_.backoff, [this] { return Random(); });
  for (int tries = 1;; ++tries) {
    absl::Status status = Once(call);
    if (!absl::IsUnavailable(status) || rpc::ReasonOf(status) == "NO_ANSWER" ||
        tries >= options_.tries_max) {
      return status;
    }
    LOCKSTEP_RETURN_IF_ERROR(Wait(backoff.Next()));
  }
}

absl::StatusOr<ServerInfo> GrpcCoordinator::Connect() {
  v1::GetServerInfoResponse response;
  LOCKSTEP_RETURN_IF_ERROR(Repeat([&](grpc::ClientContext* context) {
    return stub_->GetServerInfo(context, v1::GetServerInfoRequest(), &response);
  }));
  absl::StatusOr<audit::NoteKey> log_key = audit::NoteKey::FromText(response.log_key());
  if (!log_key.ok() || log_key->name != response.origin()) {
    return absl::DataLossError(absl::StrCat(options_.address,
                                            ": expected a log's key of the log's name; found \"",
                                            response.log_key(), "\""));
  }
  ServerInfo info = {.origin = response.origin(),
                     .log_key = *std::move(log_key),
                     .artifact_url = response.artifact_url(),
                     .version = response.version()};
  SetServerTime(response.server_time_ms());
  const absl::MutexLock lock(&mutex_);
  if (info_ && (info_->origin != info.origin || info_->log_key != info.log_key)) {
    return absl::FailedPreconditionError(absl::StrCat(options_.address, ": expected the log ",
                                                      info_->log_key.ToText(), " as before; found ",
                                                      info.log_key.ToText()));
  }
  info_ = info;
  return info;
}

absl::StatusOr<std::string> GrpcCoordinator::Origin() {
  {
    const absl::MutexLock lock(&mutex_);
    if (info_) return info_->origin;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const ServerInfo info, Connect());
  return info.origin;
}

void GrpcCoordinator::SetServerTime(int64_t ms) {
  const absl::MutexLock lock(&mutex_);
  server_time_ms_ = ms;
  server_time_at_ = options_.clock->Monotonic();
}

int64_t GrpcCoordinator::ServerTime() {
  const absl::MutexLock lock(&mutex_);
  if (!server_time_ms_) return absl::ToUnixMillis(options_.clock->Now());
  return *server_time_ms_ +
         absl::ToInt64Milliseconds(options_.clock->Monotonic() - server_time_at_);
}

template <class Response, class Request>
absl::StatusOr<Response> GrpcCoordinator::CallSigned(const char* method, const Request& request,
                                                     Method<Response> call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string origin, Origin());
  Backoff backoff(options_.backoff, [this] { return Random(); });
  std::optional<v1::SignedRequest> envelope;
  absl::Duration signed_at;
  bool took_time = false;
  for (int tries = 1;;) {
    if (!envelope || options_.clock->Monotonic() - signed_at > kSignatureAgeMax) {
      Request payload = request;
      LOCKSTEP_ASSIGN_OR_RETURN(*payload.mutable_header()->mutable_request_id(), RandomId());
      payload.mutable_header()->set_attempt_id(options_.attempt_id);
      payload.mutable_header()->set_time_ms(ServerTime());
      envelope = rpc::SignRequest(key_, method, origin, payload);
      signed_at = options_.clock->Monotonic();
    }
    Response response;
    const absl::Status status = Once([&](grpc::ClientContext* context) {
      return (stub_.get()->*call)(context, *envelope, &response);
    });
    if (status.ok()) return response;
    if (rpc::ReasonOf(status) == "CLOCK_SKEW" && !took_time) {
      // Nothing has happened there; so this is another request.
      int64_t server_time_ms = 0;
      if (!absl::SimpleAtoi(rpc::MetadataOf(status)["server_time_ms"], &server_time_ms)) {
        return status;
      }
      SetServerTime(server_time_ms);
      took_time = true;
      envelope.reset();
      continue;
    }
    if (!absl::IsUnavailable(status) || rpc::ReasonOf(status) == "NO_ANSWER" ||
        tries >= options_.tries_max) {
      return status;
    }
    ++tries;
    LOCKSTEP_RETURN_IF_ERROR(Wait(backoff.Next()));
  }
}

}  // namespace

absl::StatusOr<std::string> RandomId() {
  std::string id(16, '\0');
  if (::getentropy(id.data(), id.size()) != 0) {
    return absl::ErrnoToStatus(errno, "random numbers of the system");
  }
  return id;
}

absl::StatusOr<std::unique_ptr<Coordinator>> ConnectGrpc(const Ed25519PrivateKey& key,
                                                         const GrpcCoordinatorOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const rpc::ServerAddress address,
                            rpc::ParseServerAddress(options.address));
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (address.tls) {
    grpc::SslCredentialsOptions tls;
    if (!options.ca_file.empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(tls.pem_root_certs,
                                ReadFile(options.ca_file, kCertificatesBytesMax));
    }
    credentials = grpc::SslCredentials(tls);
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kAnswerBytesMax);
  // Tries are this file's business, and each channel is a connection of its own.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 10'000);
  // No proxy leads to this machine.
  if (!address.tls) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return std::make_unique<GrpcCoordinator>(
      key, options, grpc::CreateCustomChannel(address.target, credentials, arguments));
}

}  // namespace lockstep::worker
