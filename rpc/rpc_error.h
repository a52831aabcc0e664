// SPDX-License-Identifier: Apache-2.0
//
// Errors across the wire: an absl::Status with a reason for programs on either side, and between
// them a gRPC status whose details are a google.rpc.Status with one google.rpc.ErrorInfo.
#ifndef LOCKSTEP_RPC_RPC_ERROR_H_
#define LOCKSTEP_RPC_RPC_ERROR_H_

#include <grpcpp/support/status.h>

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::rpc {

using Metadata = std::map<std::string, std::string>;

// The status with a reason (UPPER_SNAKE_CASE, one of those that the services' comments name), which
// travels with it as a payload. status: not OK.
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const Metadata& metadata = {});

// Empty if there is none.
std::string ReasonOf(const absl::Status& status);
Metadata MetadataOf(const absl::Status& status);

// What a server answers. Messages keep their first 1,024 bytes, as UTF-8. An error without a reason
// is one that the caller cannot help: it goes out as INTERNAL and with the reason of that name, and
// its own text stays here; Unavailable, DeadlineExceeded, Cancelled and ResourceExhausted keep
// their code.
grpc::Status ToGrpc(const absl::Status& status);

// What a client makes of an answer, which may be anything: a server without details, a proxy.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace lockstep::rpc

#endif  // LOCKSTEP_RPC_RPC_ERROR_H_
