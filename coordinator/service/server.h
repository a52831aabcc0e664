// SPDX-License-Identifier: Apache-2.0
//
// The gRPC servers: one for everybody (AuditService, PublicService) and one for trainers
// (TrainerService), each with the health service and reflection. Without TLS on loopback only.
//
// Calls run on threads of their own and wait there for the writer; a heartbeat or an attestation
// waits a few milliseconds, so that threads_max of them at once are thousands a second.

#ifndef LOCKSTEP_COORDINATOR_SERVICE_SERVER_H_
#define LOCKSTEP_COORDINATOR_SERVICE_SERVER_H_

#include <prometheus/registry.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/service/audit_service.h"
#include "coordinator/service/calls.h"

namespace lockstep::coordinator {

// Files, PEM. Without a certificate: no TLS.
struct TlsOptions {
  std::string certificate;
  std::string key;
  std::string client_ca;  // clients must show a certificate that this signed
};

struct GrpcServerOptions {
  // "127.0.0.1:7440", "[::]:7440"; port 0: the system chooses one.
  std::string public_address = "127.0.0.1:0";
  std::string trainer_address = "127.0.0.1:0";
  TlsOptions public_tls;
  TlsOptions trainer_tls;
  CallOptions calls;
  AuditServiceOptions audit;
  int threads_max = 1'024;
  size_t memory_bytes_max = size_t{512} << 20;     // of what all connections together hold
  std::shared_ptr<prometheus::Registry> registry;  // not null
};

class GrpcServers {
 public:
  // Listens and answers from now on. FailedPrecondition: an address that is not loopback without
  // TLS, for trainers without client_ca too; or one that is taken. The coordinator outlives the
  // servers.
  static absl::StatusOr<std::unique_ptr<GrpcServers>> Start(Coordinator& coordinator,
                                                            const GrpcServerOptions& options);
  // As Stop with no patience.
  ~GrpcServers();
  GrpcServers(const GrpcServers&) = delete;
  GrpcServers& operator=(const GrpcServers&) = delete;

  int public_port() const;
  int trainer_port() const;

  // What the health service says; SERVING at first. From any thread.
  void SetServing(bool serving);

  // NOT_SERVING; no new calls; those under way have up to `patience`. Called once.
  void Stop(absl::Duration patience);

 private:
  struct Parts;
  explicit GrpcServers(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVICE_SERVER_H_
