// SPDX-License-Identifier: Apache-2.0
//
// Calls, counted and limited.

#include "coordinator/service/calls.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/logging.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {

Calls::Calls(const CallOptions& options, std::shared_ptr<prometheus::Registry> registry)
    : options_(options),
      limiter_(options.limits),
      registry_(std::move(registry)),
      calls_(prometheus::BuildCounter()
                 .Name("lockstep_rpc_calls_total")
                 .Help("gRPC calls answered, by method and reason (OK for none)")
                 .Register(*registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("lockstep_rpc_duration_seconds")
                   .Help("Time to answer a gRPC call, by method")
                   .Register(*registry_)) {}

std::string Calls::AddressOf(const grpc::ServerContext& context) const {
  std::string address = AddressOfPeer(context.peer());
  if (!options_.trust_proxy || !IsLoopback(address)) return address;
  // Of several headers, too, the last is the proxy's.
  const auto [first, end] = context.client_metadata().equal_range("x-forwarded-for");
  if (first == end) return address;
  const grpc::string_ref last = std::prev(end)->second;
  absl::string_view list(last.data(), last.size());
  // The last one is the proxy's own word; those before it are the caller's.
  const size_t comma = list.rfind(',');
  if (comma != absl::string_view::npos) list.remove_prefix(comma + 1);
  list = absl::StripAsciiWhitespace(list);
  return list.empty() || list.size() > 64 ? address : AddressGroup(list);
}

grpc::Status Calls::Serve(grpc::ServerContext* context, const char* method,
                          absl::FunctionRef<absl::Status(const std::string& address)> body) {
  const absl::Duration start = RealClock().Monotonic();
  const std::string address = AddressOf(*context);
  absl::Status status;
  if (!limiter_.Take(address)) {
    status =
        rpc::WithReason(absl::ResourceExhaustedError("too many calls from this address; slow down"),
                        "RATE_LIMITED", {{"retry_after_ms", "1000"}});
  } else if (context->deadline() < std::chrono::system_clock::now()) {
    status = absl::DeadlineExceededError("nobody waits for the answer any more");
  } else {
    status = body(address);
  }
  const grpc::Status answer = rpc::ToGrpc(status);
  if (answer.error_code() == grpc::StatusCode::INTERNAL) {
    LOCKSTEP_LOG_ERROR("{} failed: {}", method, status);
  } else if (!status.ok() && rpc::ReasonOf(status).empty()) {
    LOCKSTEP_LOG_DEBUG("{}: {}", method, status);
  }
  // Reasons are words of ours, and few.
  const std::string reason = rpc::ReasonOf(status);
  calls_
      .Add({{"method", method},
            {"reason", !reason.empty() ? reason : absl::StatusCodeToString(status.code())}})
      .Increment();
  seconds_
      .Add({{"method", method}},
           prometheus::Histogram::BucketBoundaries{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5})
      .Observe(absl::ToDoubleSeconds(RealClock().Monotonic() - start));
  return answer;
}

}  // namespace lockstep::coordinator
