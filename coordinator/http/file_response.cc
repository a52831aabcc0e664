// SPDX-License-Identifier: Apache-2.0
//
// See file_response.h.
#include "coordinator/http/file_response.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/http/conditional.h"
#include "net/http_range.h"

namespace lockstep::coordinator {

HttpResponse FileResponse(const HttpRequest& request, std::shared_ptr<const OpenFile> file,
                          const FileKind& kind) {
  const uint64_t size = file->bytes();
  HttpResponse response{.content_type = kind.content_type, .cache_control = kind.cache_control};
  const std::string etag = absl::StrCat("\"", kind.etag, "\"");
  net::RangeRequest range;
  if (!kind.etag.empty()) {
    response.headers = {{"ETag", etag}, {"Accept-Ranges", "bytes"}};
    if (const auto wanted = request.Header("if-match");
        wanted && !MatchesETag(*wanted, etag, false)) {
      return TextResponse(412, "the file is another one");
    }
    if (const auto had = request.Header("if-none-match"); had && MatchesETag(*had, etag, true)) {
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
