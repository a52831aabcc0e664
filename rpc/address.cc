// SPDX-License-Identifier: Apache-2.0
//
// Addresses of servers.
#include "rpc/address.h"

#include <arpa/inet.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep::rpc {

bool IsLoopbackHost(absl::string_view host) {
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) return false;
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24 == 127;
}

absl::StatusOr<ServerAddress> ParseServerAddress(absl::string_view url) {
  absl::string_view rest = url;
  ServerAddress address;
  if (absl::ConsumePrefix(&rest, "http://")) {
    address.tls = false;
  } else if (!absl::ConsumePrefix(&rest, "https://")) {
    rest = "";
  }
  absl::ConsumeSuffix(&rest, "/");
  address.target = std::string(rest);
  // A colon within brackets is an IPv6 address's own.
  const bool no_port = !absl::StrContains(rest, ":") || absl::EndsWith(rest, "]");
  if (address.tls && no_port && !rest.empty()) absl::StrAppend(&address.target, ":443");
  const size_t colon = address.target.rfind(':');
  int port = 0;
  const bool good = colon != std::string::npos && colon > 0 && !absl::StrContains(rest, "/") &&
                    absl::SimpleAtoi(address.target.substr(colon + 1), &port) && port > 0 &&
                    port < 65536;
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a coordinator's address as https://HOST:PORT (or http:// on this machine); "
        "found \"",
        url, "\""));
  }
  if (!address.tls && !IsLoopbackHost(address.target.substr(0, colon))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the coordinator at ", url, " is not on this machine, so it needs https:// or a tunnel"));
  }
  return address;
}

}  // namespace lockstep::rpc
