// SPDX-License-Identifier: Apache-2.0
//
// What every call of every service goes through: the limits, the metrics, the form of errors.

#ifndef LOCKSTEP_COORDINATOR_SERVICE_CALLS_H_
#define LOCKSTEP_COORDINATOR_SERVICE_CALLS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/service/address_limiter.h"

namespace lockstep::coordinator {

struct CallOptions {
  AddressLimits limits;
  // A proxy on loopback tells whose calls it passes on, in x-forwarded-for.
  bool trust_proxy = false;
};

// Safe from any thread.
class Calls {
 public:
  Calls(const CallOptions& options, std::shared_ptr<prometheus::Registry> registry);

  // Answers a call: refuses it if the address calls too often or its deadline is past, and
  // otherwise with what `body` returns. `method` is a name of ours, never a stranger's text.
  grpc::Status Serve(grpc::ServerContext* context, const char* method,
                     absl::FunctionRef<absl::Status(const std::string& address)> body);

 private:
  std::string AddressOf(const grpc::ServerContext& context) const;

  const CallOptions options_;
  AddressLimiter limiter_;
  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Histogram>& seconds_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVICE_CALLS_H_
