// SPDX-License-Identifier: Apache-2.0
//
// `lockstep-coordinator serve`: the data directory opened, the servers put up around it, and all of
// it taken down in order.
//
//   DIR/lock          held by the process
//   DIR/origin        the log's name, as it was at the first start
//   DIR/log.key       signs the log
//   DIR/log/          the log (coordinator/log)
//   DIR/store.sqlite  the store (coordinator/store)
//   DIR/artifacts/    what was uploaded (coordinator/http)

#ifndef LOCKSTEP_COORDINATOR_SERVE_H_
#define LOCKSTEP_COORDINATOR_SERVE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "coordinator/scheduler/scheduler.h"
#include "coordinator/service/server.h"

namespace lockstep::coordinator {

struct ServeOptions {
  std::string data;
  std::string origin;  // empty: as it was; at the first start, a name made from the key
  std::string http_address = "127.0.0.1";
  uint16_t http_port = 7442;
  bool http_plaintext_anywhere = false;  // serve HTTP, which is never encrypted, beyond loopback
  std::string artifact_url;              // empty: that of the HTTP server here
  std::string public_url;                // for workers; empty: that of the gRPC server here
  std::string web_root;                  // the dashboard's build; empty: the one in the program
  uint64_t artifact_bytes_max = uint64_t{1} << 40;
  uint64_t operator_bytes_max = uint64_t{64} << 30;  // that one operator may have uploaded
  int64_t retry_ms_min = SchedulerPolicy().retry_ms_min;
  GrpcServerOptions grpc;  // but for the registry
};

// Serves until SIGTERM or SIGINT: then OK. Prints a line of JSON with the ports when it is ready.
// An error: it could not start, or can no longer write.
absl::Status Serve(const ServeOptions& options);

// A copy of the store of a data directory that nobody serves, as `path`, which must not exist.
absl::Status BackUp(const std::string& data, const std::string& path);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVE_H_
