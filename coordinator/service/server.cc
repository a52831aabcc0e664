// SPDX-License-Identifier: Apache-2.0
//
// Two servers, built and ended.

#include "coordinator/service/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/service/public_service.h"
#include "coordinator/service/trainer_service.h"
#include "rpc/address.h"

namespace lockstep::coordinator {
namespace {

constexpr int kPublicBytesMax = 256 << 10;
constexpr int kTrainerBytesMax = 4 << 20;  // a run's artifacts, or 256 records
constexpr int kStreamsPerConnectionMax = 100;
constexpr int kIdleThreadsMax = 256;
constexpr int64_t kPemBytesMax = 1 << 20;

bool IsLoopbackAddress(absl::string_view address) {
  return rpc::IsLoopbackHost(address.substr(0, address.rfind(':')));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const std::string& address,
                                                                         const TlsOptions& tls) {
  if (tls.certificate.empty() != tls.key.empty() ||
      (tls.certificate.empty() && !tls.client_ca.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat(address, ": TLS needs a certificate and its key, both"));
  }
  if (tls.certificate.empty()) {
    if (IsLoopbackAddress(address)) return grpc::InsecureServerCredentials();
    return absl::FailedPreconditionError(
        absl::StrCat(address,
                     ": without TLS only loopback is served; give a certificate and a key, or "
                     "listen on 127.0.0.1 behind a proxy"));
  }
  grpc::SslServerCredentialsOptions options(
      tls.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                            : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  LOCKSTEP_ASSIGN_OR_RETURN(pair.cert_chain, ReadFile(tls.certificate, kPemBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(pair.private_key, ReadFile(tls.key, kPemBytesMax));
  options.pem_key_cert_pairs.push_back(std::move(pair));
  if (!tls.client_ca.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile(tls.client_ca, kPemBytesMax));
  }
  return grpc::SslServerCredentials(options);
}

struct Listening {
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

absl::StatusOr<Listening> Listen(const std::string& address, const TlsOptions& tls,
                                 const grpc::ResourceQuota& quota, int message_bytes_max,
                                 const std::vector<grpc::Service*>& services) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                            MakeCredentials(address, tls));
  Listening listening;
  grpc::ServerBuilder builder;
  // Else two coordinators would share a port, and each get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.SetMaxReceiveMessageSize(message_bytes_max);
  // A batch's answers come together: as many threads as that then wait for the next calls, where
  // gRPC's default ends all but two, and begins new ones a moment later.
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, kIdleThreadsMax);
  builder.SetResourceQuota(quota);
  builder.AddListeningPort(address, credentials, &listening.port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  listening.server = builder.BuildAndStart();
  if (listening.server == nullptr || listening.port == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", address,
                     ": is the address another program's, or none of this machine's; or is the "
                     "certificate not its key's?"));
  }
  return listening;
}

}  // namespace

struct GrpcServers::Parts {
  Parts(Coordinator& coordinator, const GrpcServerOptions& options)
      : calls(options.calls, options.registry),
        trainer(coordinator, calls),
        audit(coordinator, calls, options.audit),
        open(coordinator, calls) {}

  Calls calls;
  TrainerService trainer;
  AuditService audit;
  PublicService open;
  std::mutex mutex;  // over `stopped` and what the health service says
  bool stopped = false;
  Listening for_everybody;
  Listening for_trainers;
};

GrpcServers::GrpcServers(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

GrpcServers::~GrpcServers() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<GrpcServers>> GrpcServers::Start(Coordinator& coordinator,
                                                                const GrpcServerOptions& options) {
  if (!IsLoopbackAddress(options.trainer_address) && options.trainer_tls.client_ca.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.trainer_address,
                     ": beyond loopback trainers show certificates: give the CA that signs them "
                     "(--trainer-tls-client-ca), or listen on 127.0.0.1"));
  }
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
  grpc::ResourceQuota quota("lockstep-coordinator");
  quota.SetMaxThreads(options.threads_max);
  quota.Resize(options.memory_bytes_max);
  auto parts = std::make_unique<Parts>(coordinator, options);
  LOCKSTEP_ASSIGN_OR_RETURN(parts->for_everybody,
                            Listen(options.public_address, options.public_tls, quota,
                                   kPublicBytesMax, {&parts->audit, &parts->open}));
  LOCKSTEP_ASSIGN_OR_RETURN(parts->for_trainers,
                            Listen(options.trainer_address, options.trainer_tls, quota,
                                   kTrainerBytesMax, {&parts->trainer, &parts->audit}));
  std::unique_ptr<GrpcServers> servers(new GrpcServers(std::move(parts)));
  servers->SetServing(true);
  return servers;
}

int GrpcServers::public_port() const { return parts_->for_everybody.port; }
int GrpcServers::trainer_port() const { return parts_->for_trainers.port; }

void GrpcServers::SetServing(bool serving) {
  const std::lock_guard<std::mutex> lock(parts_->mutex);
  if (parts_->stopped) return;
  for (const Listening* listening : {&parts_->for_everybody, &parts_->for_trainers}) {
    grpc::HealthCheckServiceInterface* const health = listening->server->GetHealthCheckService();
    health->SetServingStatus(serving);
    const bool trainers = listening == &parts_->for_trainers;
    health->SetServingStatus("lockstep.v1.AuditService", serving);
    health->SetServingStatus(trainers ? "lockstep.v1.TrainerService" : "lockstep.v1.PublicService",
                             serving);
  }
}

void GrpcServers::Stop(absl::Duration patience) {
  SetServing(false);
  {
    const std::lock_guard<std::mutex> lock(parts_->mutex);
    if (parts_->stopped) return;
    parts_->stopped = true;
  }
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoMilliseconds(patience);
  for (const Listening* listening : {&parts_->for_everybody, &parts_->for_trainers}) {
    listening->server->Shutdown(deadline);
  }
}

}  // namespace lockstep::coordinator
