// SPDX-License-Identifier: Apache-2.0
//
// See response_head.h.
#include "coordinator/http/response_head.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep::coordinator {
namespace {

constexpr char kNothingAllowed[] = "default-src 'none'; frame-ancestors 'none'";

bool IsClean(absl::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return absl::ascii_iscntrl(c) && c != '\t'; });
}

void AppendHeader(absl::string_view name, absl::string_view value, std::string* head) {
  if (IsClean(name) && IsClean(value)) absl::StrAppend(head, name, ": ", value, "\r\n");
}

}  // namespace

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

std::string FormatResponseHead(const HttpResponse& response, const Framing& framing,
                               absl::Time now) {
  std::string head =
      absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status), "\r\n");
  AppendHeader("Date", absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone()),
               &head);
  if (response.status != 304) AppendHeader("Content-Type", response.content_type, &head);
  if (framing.content_length && response.status != 304) {
    AppendHeader("Content-Length", absl::StrCat(*framing.content_length), &head);
  }
  if (framing.chunked) AppendHeader("Transfer-Encoding", "chunked", &head);
  AppendHeader("Connection", framing.keep_alive ? "keep-alive" : "close", &head);
  AppendHeader("Cache-Control", response.cache_control, &head);
  for (const auto& [name, value] : response.headers) AppendHeader(name, value, &head);
  AppendHeader("X-Content-Type-Options", "nosniff", &head);
  AppendHeader("X-Frame-Options", "DENY", &head);
  AppendHeader("Referrer-Policy", "no-referrer", &head);
  AppendHeader("Cross-Origin-Opener-Policy", "same-origin", &head);
  AppendHeader("Cross-Origin-Resource-Policy",
               response.cross_origin ? "cross-origin" : "same-origin", &head);
  if (response.cross_origin) {
    AppendHeader("Access-Control-Allow-Origin", "*", &head);
    AppendHeader("Access-Control-Expose-Headers",
                 "ETag, Content-Range, Accept-Ranges, Lockstep-First-Step", &head);
  }
  AppendHeader("Permissions-Policy", "camera=(), geolocation=(), microphone=()", &head);
  AppendHeader("Content-Security-Policy",
               response.content_security_policy.empty() ? kNothingAllowed
                                                        : response.content_security_policy.c_str(),
               &head);
  head += "\r\n";
  return head;
}

}  // namespace lockstep::coordinator
