// SPDX-License-Identifier: Apache-2.0
//
// See conditional.h.
#include "coordinator/http/conditional.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/sha256.h"

namespace lockstep::coordinator {

bool MatchesETag(absl::string_view list, absl::string_view etag, bool weak) {
  for (absl::string_view tag : absl::StrSplit(list, ',')) {
    tag = absl::StripAsciiWhitespace(tag);
    if (tag == "*") return true;
    if (weak) absl::ConsumePrefix(&tag, "W/");
    if (tag == etag) return true;
  }
  return false;
}

std::string ETagOf(ByteSpan bytes) {
  return absl::StrCat("\"", Sha256(bytes).ToHex().substr(0, 32), "\"");
}

HttpResponse Conditional(const HttpRequest& request, const std::string& etag, HttpResponse whole) {
  whole.headers.emplace_back("ETag", etag);
  const std::optional<absl::string_view> had = request.Header("if-none-match");
  if (had && MatchesETag(*had, etag, true)) {
    whole.status = 304;
    whole.body = std::string();
  }
  return whole;
}

}  // namespace lockstep::coordinator
