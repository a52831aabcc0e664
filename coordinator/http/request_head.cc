// SPDX-License-Identifier: Apache-2.0
//
// See request_head.h. The only file that sees Beast.
#include "coordinator/http/request_head.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/verb.hpp>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "net/http_range.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {
namespace {

namespace http = boost::beast::http;

constexpr size_t kTargetBytesMax = 4096;
constexpr size_t kHeadersMax = 64;
constexpr size_t kParametersMax = 32;

absl::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

bool IsPathCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' ||
         c == '~';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsUtf8(const std::string& text) {
  try {
    nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

std::optional<std::string> Unescape(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  if (out.find('\0') != std::string::npos || !IsUtf8(out)) return std::nullopt;
  return out;
}

std::optional<HttpMethod> MethodOf(http::verb verb) {
  if (verb == http::verb::get) return HttpMethod::kGet;
  if (verb == http::verb::head) return HttpMethod::kHead;
  if (verb == http::verb::put) return HttpMethod::kPut;
  return std::nullopt;
}

// The answer to a request that we do not take; nullopt if we do.
std::optional<HttpResponse> Refusal(const HttpRequest& request, bool http_1_1) {
  if (request.Header("transfer-encoding") || request.Header("upgrade")) {
    return TextResponse(501, "a body is to have a Content-Length, and there is no upgrade");
  }
  const size_t hosts = std::count_if(request.headers.begin(), request.headers.end(),
                                     [](const auto& header) { return header.first == "host"; });
  if (http_1_1 ? hosts != 1 : hosts > 1) return TextResponse(400, "expected one Host");
  const bool length = request.Header("content-length").has_value();
  if (request.method == HttpMethod::kPut) {
    if (!length) return TextResponse(411, "expected one Content-Length");
  } else if (request.content_length > 0) {
    return TextResponse(400, "this method has no body");
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> FindHeadEnd(absl::string_view bytes, size_t from) {
  from = from > 3 ? from - 3 : 0;
  const size_t at = bytes.find("\r\n\r\n", from);
  if (at == absl::string_view::npos) return std::nullopt;
  return at + 4;
}

bool IsSafePath(absl::string_view path) {
  if (path.empty() || path.front() != '/') return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(path.substr(1), '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "." || parts[i] == "..") return false;
    if (parts[i].empty() && i + 1 != parts.size()) return false;
    if (!std::all_of(parts[i].begin(), parts[i].end(), IsPathCharacter)) return false;
  }
  return true;
}

std::optional<QueryParameters> ParseQuery(absl::string_view query) {
  QueryParameters parameters;
  if (query.empty()) return parameters;
  for (const absl::string_view part : absl::StrSplit(query, '&')) {
    if (parameters.size() == kParametersMax) return std::nullopt;
    const std::pair<absl::string_view, absl::string_view> both =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    std::optional<std::string> name = Unescape(both.first), value = Unescape(both.second);
    if (!name || !value) return std::nullopt;
    parameters.emplace_back(*std::move(name), *std::move(value));
  }
  return parameters;
}

std::variant<RequestHead, HttpResponse> ParseRequestHead(absl::string_view head) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(std::numeric_limits<uint32_t>::max());  // the caller's business
  parser.body_limit(std::numeric_limits<uint64_t>::max());
  boost::system::error_code error;
  parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error && error != http::error::need_more) {
    return TextResponse(400, "this is no HTTP request");
  }
  if (!parser.is_header_done()) return TextResponse(400, "this is no HTTP request");
  const auto& message = parser.get();
  if (message.version() != 11 && message.version() != 10) {
    return TextResponse(505, "expected HTTP/1.1");
  }
  RequestHead result;
  result.http_1_1 = message.version() == 11;
  result.keep_alive = message.keep_alive();
  HttpRequest& request = result.request;
  const std::optional<HttpMethod> method = MethodOf(message.method());
  if (!method) return TextResponse(501, "expected GET, HEAD or PUT");
  request.method = *method;
  const absl::string_view target = View(message.target());
  if (target.size() > kTargetBytesMax) return TextResponse(414, "the address is too long");
  const size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != absl::string_view::npos) request.query = std::string(target.substr(question + 1));
  if (!IsSafePath(request.path)) return TextResponse(400, "there is no such path");
  for (const auto& field : message) {
    if (request.headers.size() == kHeadersMax) return TextResponse(431, "too many headers");
    request.headers.emplace_back(absl::AsciiStrToLower(View(field.name_string())),
                                 std::string(View(field.value())));
  }
  if (const auto length = request.Header("content-length")) {
    const std::optional<uint64_t> value = net::ParseDecimal(*length);
    if (!value) return TextResponse(400, "expected a Content-Length in decimal digits");
    request.content_length = *value;
  }
  if (auto refusal = Refusal(request, result.http_1_1)) return *std::move(refusal);
  const auto expect = request.Header("expect");
  if (expect && !absl::EqualsIgnoreCase(*expect, "100-continue")) {
    return TextResponse(417, "expected no expectation but 100-continue");
  }
  result.expects_continue = expect.has_value() && result.http_1_1;
  return result;
}

}  // namespace lockstep::coordinator
