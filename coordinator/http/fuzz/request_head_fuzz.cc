// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the head of a request: what is accepted has a safe path and a length that is sure,
// and asks for a body only where one may be.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "base/logging.h"
#include "coordinator/http/request_head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace coordinator = lockstep::coordinator;
  const absl::string_view bytes = lockstep::AsChars({data, size});
  const std::optional<size_t> end = coordinator::FindHeadEnd(bytes, 0);
  if (!end) {
    coordinator::ParseQuery(bytes);
    return 0;
  }
  LOCKSTEP_CHECK(*end >= 4 && *end <= size);
  const auto result = coordinator::ParseRequestHead(bytes.substr(0, *end));
  const auto* head = std::get_if<coordinator::RequestHead>(&result);
  if (head == nullptr) {
    LOCKSTEP_CHECK(std::get<coordinator::HttpResponse>(result).status >= 400);
    return 0;
  }
  const coordinator::HttpRequest& request = head->request;
  LOCKSTEP_CHECK(coordinator::IsSafePath(request.path));
  LOCKSTEP_CHECK(request.path.find("..") == std::string::npos ||
                 (request.path + "/").find("/../") == std::string::npos);
  LOCKSTEP_CHECK(request.method == coordinator::HttpMethod::kPut || request.content_length == 0);
  LOCKSTEP_CHECK(!request.Header("transfer-encoding"));
  for (const auto& [name, value] : request.headers) {
    LOCKSTEP_CHECK(name.find_first_of("\r\n:") == std::string::npos);
    LOCKSTEP_CHECK(value.find_first_of("\r\n") == std::string::npos);
  }
  if (const auto parameters = coordinator::ParseQuery(request.query)) {
    LOCKSTEP_CHECK(parameters->size() <= 32);
  }
  return 0;
}
