// SPDX-License-Identifier: Apache-2.0
//
// Where a gRPC server is, as people write it: https://HOST or https://HOST:PORT, or
// http://HOST:PORT on this machine, where nothing that is said can be heard or changed on the way.
#ifndef LOCKSTEP_RPC_ADDRESS_H_
#define LOCKSTEP_RPC_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::rpc {

// "localhost", 127.0.0.0/8 in four numbers, or ::1, in brackets or not. A name that only begins
// like one is none.
bool IsLoopbackHost(absl::string_view host);

struct ServerAddress {
  std::string target;  // "HOST:PORT"; https without a port is 443
  bool tls = true;
};

// InvalidArgument for what is no address, and for http:// to another machine.
absl::StatusOr<ServerAddress> ParseServerAddress(absl::string_view url);

}  // namespace lockstep::rpc

#endif  // LOCKSTEP_RPC_ADDRESS_H_
