// SPDX-License-Identifier: Apache-2.0
//
// See message.h.
#include "coordinator/http/message.h"

#include "absl/strings/str_cat.h"

namespace lockstep::coordinator {

std::optional<absl::string_view> HttpRequest::Header(absl::string_view name) const {
  std::optional<absl::string_view> value;
  for (const auto& [key, text] : headers) {
    if (key != name) continue;
    if (value) return std::nullopt;
    value = text;
  }
  return value;
}

HttpResponse TextResponse(int status, absl::string_view text) {
  return {.status = status, .body = absl::StrCat(text, "\n")};
}

}  // namespace lockstep::coordinator
