// SPDX-License-Identifier: Apache-2.0
//
// Requests by libcurl's easy interface. See http_client.h.
#include "engine/data/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

// Once for the process; libcurl asks for it before threads use it.
void InitialiseLibrary() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  LOCKSTEP_CHECK(code == CURLE_OK, "libcurl does not start: {}", curl_easy_strerror(code));
}

}  // namespace

// One file or range, over all its tries.
struct HttpClient::Request {
  std::string url;
  // A range: [begin, begin + size of out) of file_bytes.
  std::optional<std::span<uint8_t>> out;
  uint64_t begin = 0;
  uint64_t file_bytes = 0;
  // A whole file.
  std::string* body = nullptr;
  size_t bytes_max = 0;

  const std::function<bool()>* interrupted = nullptr;
  uint64_t received = 0;
  CURL* handle = nullptr;
  std::string content_range;  // of this try
  bool checked = false;       // the answer's beginning, in this try
  absl::Status status;        // why we broke it off

  std::string Where() const {
    if (!out) return url;
    return absl::StrCat(url, ", bytes ", begin, " to ", begin + out->size() - 1);
  }
  bool done() const { return out && received == out->size(); }
  uint64_t next() const { return begin + received; }
  absl::Status CheckAnswer();
  absl::Status TakeBytes(const char* bytes, size_t size);
  static size_t OnBody(char* bytes, size_t, size_t size, void* request);
};

namespace {

absl::Status StatusOfCode(long code) {
  const std::string message = absl::StrCat("the server answered ", code);
  if (code == 404 || code == 410) return absl::NotFoundError(message);
  if (code == 401 || code == 403) return absl::PermissionDeniedError(message);
  if (code == 416) {
    return absl::DataLossError(absl::StrCat(message, ": the file there ends before these bytes"));
  }
  if (code == 429 || code >= 500) return absl::UnavailableError(message);
  return absl::FailedPreconditionError(message);
}

}  // namespace

// Before the first byte of a body: is it what was asked for?
absl::Status HttpClient::Request::CheckAnswer() {
  long code = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
  if (!out) return code == 200 ? absl::OkStatus() : StatusOfCode(code);
  if (code == 200) {
    if (begin == 0 && out->size() == file_bytes && received == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the server ignores ranges: expected an answer of 206, found 200; use a server that "
        "supports range requests");
  }
  if (code != 206) return StatusOfCode(code);
  const std::string expected =
      absl::StrCat("bytes ", next(), "-", begin + out->size() - 1, "/", file_bytes);
  if (content_range == expected ||
      content_range == absl::StrCat(absl::StripSuffix(expected, absl::StrCat(file_bytes)), "*")) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("expected the range \"", expected, "\", found \"", content_range, "\""));
}

absl::Status HttpClient::Request::TakeBytes(const char* bytes, size_t size) {
  if (out) {
    if (size > out->size() - received) {
      return absl::DataLossError(
          absl::StrCat("the server sends more than the ", out->size(), " bytes asked for"));
    }
    std::memcpy(out->data() + received, bytes, size);
  } else {
    if (size > bytes_max - body->size()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than the ", bytes_max, " bytes allowed"));
    }
    body->append(bytes, size);
  }
  received += size;
  return absl::OkStatus();
}

size_t HttpClient::Request::OnBody(char* bytes, size_t, size_t size, void* request) {
  auto& self = *static_cast<Request*>(request);
  if (!self.checked) self.status = self.CheckAnswer();
  self.checked = true;
  if (self.status.ok()) self.status = self.TakeBytes(bytes, size);
  return self.status.ok() ? size : 0;
}

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) { InitialiseLibrary(); }

HttpClient::~HttpClient() {
  const absl::MutexLock lock(&mutex_);
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

void* HttpClient::TakeHandle() {
  const absl::MutexLock lock(&mutex_);
  if (idle_.empty()) return curl_easy_init();
  void* handle = idle_.back();
  idle_.pop_back();
  return handle;
}

void HttpClient::ReturnHandle(void* handle) {
  curl_easy_reset(handle);  // keeps the connection
  const absl::MutexLock lock(&mutex_);
  idle_.push_back(handle);
}

namespace {

size_t OnHeader(char* bytes, size_t, size_t size, void* content_range) {
  const absl::string_view line(bytes, size);
  auto* range = static_cast<std::string*>(content_range);
  if (absl::StartsWith(line, "HTTP/")) range->clear();  // of a redirection before
  constexpr absl::string_view kName = "content-range:";
  if (absl::StartsWithIgnoreCase(line, kName)) {
    *range = std::string(absl::StripAsciiWhitespace(line.substr(kName.size()))).substr(0, 256);
  }
  return size;
}

int OnProgress(void* interrupted, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& ask = *static_cast<const std::function<bool()>*>(interrupted);
  return ask && ask() ? 1 : 0;
}

void SetCommon(CURL* handle, const std::string& url, const HttpOptions& options) {
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);  // several threads
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(options.connect_timeout)));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME,
                   std::max(1L, static_cast<long>(absl::ToInt64Seconds(options.stall_timeout))));
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &options.interrupted);
}

}  // namespace

absl::Status HttpClient::PerformOnce(Request& request) {
  CURL* handle = TakeHandle();
  if (handle == nullptr) return absl::ResourceExhaustedError("libcurl has no memory");
  SetCommon(handle, request.url, options_);
  request.handle = handle;
  request.content_range.clear();
  request.checked = false;
  request.status = absl::OkStatus();
  if (request.out) {
    const std::string range =
        absl::StrCat(request.next(), "-", request.begin + request.out->size() - 1);
    curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());  // copied
  } else {
    request.body->clear();
    request.received = 0;
  }
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &request.content_range);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, Request::OnBody);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &request);
  const CURLcode code = curl_easy_perform(handle);
  if (code == CURLE_OK && !request.checked)
    request.status = request.CheckAnswer();  // an empty body
  ReturnHandle(handle);
  if (!request.status.ok()) return request.status;
  if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError("interrupted");
  if (code == CURLE_OPERATION_TIMEDOUT && request.checked) {
    return absl::UnavailableError(
        absl::StrCat("the server stalled after ", request.received, " bytes"));
  }
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return absl::InvalidArgumentError("expected an address of http or https");
  }
  if (request.out && !request.done() && (code == CURLE_OK || request.received > 0)) {
    return absl::UnavailableError(absl::StrCat("the answer ended after ", request.received, " of ",
                                               request.out->size(), " bytes"));
  }
  if (code != CURLE_OK) return absl::UnavailableError(curl_easy_strerror(code));
  return absl::OkStatus();
}

// In pieces, so that an interrupt does not wait for the end.
absl::Status HttpClient::Wait(int tries_done) const {
  absl::Duration left = options_.backoff * (int64_t{1} << std::min(tries_done - 1, 6));
  while (left > absl::ZeroDuration()) {
    if (options_.interrupted && options_.interrupted()) return absl::CancelledError("interrupted");
    const absl::Duration piece = std::min(left, absl::Milliseconds(100));
    absl::SleepFor(piece);
    left -= piece;
  }
  return absl::OkStatus();
}

absl::Status HttpClient::Perform(Request& request) {
  for (int tries = 1;; ++tries) {
    const absl::Status status = PerformOnce(request);
    if (status.ok()) return status;
    if (!absl::IsUnavailable(status) || tries >= options_.tries_max) {
      return WithContext(status, request.Where());
    }
    LOCKSTEP_RETURN_IF_ERROR(Wait(tries), request.Where());
  }
}

absl::Status HttpClient::ReadRange(const std::string& url, uint64_t begin, uint64_t size,
                                   std::span<uint8_t> out) {
  if (out.empty()) return absl::OkStatus();
  Request request;
  request.url = url;
  request.out = out;
  request.begin = begin;
  request.file_bytes = size;
  return Perform(request);
}

absl::StatusOr<std::string> HttpClient::ReadFile(const std::string& url, size_t bytes_max) {
  std::string body;
  Request request;
  request.url = url;
  request.body = &body;
  request.bytes_max = bytes_max;
  LOCKSTEP_RETURN_IF_ERROR(Perform(request));
  return body;
}

}  // namespace lockstep::engine
