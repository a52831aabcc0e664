// SPDX-License-Identifier: Apache-2.0
//
// See file_response.h.
#include "coordinator/http/file_response.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "net/http_range.h"

namespace lockstep::coordinator {
namespace {

// Whether a list of entity tags ("*", or quoted, comma-separated) has `etag` in it. `weak`: a tag
// marked as weak matches too (RFC 9110 section 8.8.3.2). Our tags hold no comma.
bool Matches(absl::string_view list, const std::string& etag, bool weak) {
  for (absl::string_view tag : absl::StrSplit(list, ',')) {
    tag = absl::StripAsciiWhitespace(tag);
    if (tag == "*") return true;
    if (weak) absl::ConsumePrefix(&tag, "W/");
    if (tag == etag) return true;
  }
  return false;
}

}  // namespace

HttpResponse FileResponse(const HttpRequest& request, std::shared_ptr<const OpenFile> file,
                          const FileKind& kind) {
  const uint64_t size = file->bytes();
  HttpResponse response{.content_type = kind.content_type, .cache_control = kind.cache_control};
  const std::string etag = absl::StrCat("\"", kind.etag, "\"");
  net::RangeRequest range;
  if (!kind.etag.empty()) {
    response.headers = {{"ETag", etag}, {"Accept-Ranges", "bytes"}};
    if (const auto wanted = request.Header("if-match"); wanted && !Matches(*wanted, etag, false)) {
      return TextResponse(412, "the file is another one");
    }
    if (const auto had = request.Header("if-none-match"); had && Matches(*had, etag, true)) {
      response.status = 304;
      return response;
    }
    const auto if_range = request.Header("if-range");
    const auto header = request.Header("range");
    if (header && request.method == HttpMethod::kGet && (!if_range || *if_range == etag)) {
      range = net::ParseRange(*header, size);
    }
  }
  if (range.kind == net::RangeRequest::kUnsatisfiable) {
    response = TextResponse(416, "the file has no such bytes");
    response.headers = {{"Content-Range", net::FormatContentRange({.total = size})}};
    return response;
  }
  if (range.kind == net::RangeRequest::kPart) {
    response.status = 206;
    response.headers.emplace_back(
        "Content-Range",
        net::FormatContentRange(
            {.first = range.begin, .last = range.begin + range.size - 1, .total = size}));
    response.body = FileBody{.file = std::move(file), .begin = range.begin, .size = range.size};
  } else {
    response.body = FileBody{.file = std::move(file), .begin = 0, .size = size};
  }
  return response;
}

}  // namespace lockstep::coordinator
