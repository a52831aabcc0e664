// SPDX-License-Identifier: Apache-2.0
//
// The head of a request, read from a stranger's bytes. The grammar is Boost.Beast's; what it lets
// pass and we do not serve is refused here: bodies of unknown length, paths that could mean another
// place, a host that is not said once.
#ifndef LOCKSTEP_COORDINATOR_HTTP_REQUEST_HEAD_H_
#define LOCKSTEP_COORDINATOR_HTTP_REQUEST_HEAD_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

struct RequestHead {
  HttpRequest request;  // without its peer
  bool http_1_1 = true;
  bool keep_alive = true;
  bool expects_continue = false;
};

// Where a head ends, just behind its empty line; `from` is where an earlier search gave up.
std::optional<size_t> FindHeadEnd(absl::string_view bytes, size_t from);

// `head` ends as FindHeadEnd says. Otherwise the answer that explains what is wrong with it, after
// which the connection is to be closed.
std::variant<RequestHead, HttpResponse> ParseRequestHead(absl::string_view head);

// "/" and parts of letters, digits and ".-_~", divided by "/", none of them "." or ".."; none is
// empty but perhaps the last.
bool IsSafePath(absl::string_view path);

// "a=1&b=x%20y" in order; a "+" is a space. nullopt for bad escapes, a zero byte, text that is not
// UTF-8, or more than 32 of them.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;
std::optional<QueryParameters> ParseQuery(absl::string_view query);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_REQUEST_HEAD_H_
