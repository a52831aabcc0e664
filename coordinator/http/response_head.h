// SPDX-License-Identifier: Apache-2.0
//
// The head of an answer as it goes over the wire, security headers and all.
#ifndef LOCKSTEP_COORDINATOR_HTTP_RESPONSE_HEAD_H_
#define LOCKSTEP_COORDINATOR_HTTP_RESPONSE_HEAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

struct Framing {
  std::optional<uint64_t> content_length = std::nullopt;  // chunked, or until the connection closes
  bool chunked = false;
  bool keep_alive = true;
};

// With its empty line. Headers with control characters in them are left out: no handler can be made
// to split an answer.
std::string FormatResponseHead(const HttpResponse& response, const Framing& framing,
                               absl::Time now);

// "OK", "Not Found"; "Unknown" for codes that this server does not use.
const char* ReasonOf(int status);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_RESPONSE_HEAD_H_
