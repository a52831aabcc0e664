// SPDX-License-Identifier: Apache-2.0
//
// Requests by libcurl's easy interface. See http_client.h.
#include "engine/data/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

// Once for the process; libcurl asks for it before threads use it.
void InitialiseLibrary() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  LOCKSTEP_CHECK(code == CURLE_OK, "libcurl does not start: {}", curl_easy_strerror(code));
}

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

using SteadyClock = std::chrono::steady_clock;

}  // namespace

// One file or range, over all its tries.
struct HttpClient::Request {
  std::string url;
  // A range: [begin, begin + size of out) of file_bytes.
  std::optional<std::span<uint8_t>> out;
  uint64_t begin = 0;
  uint64_t file_bytes = 0;
  // Or a whole file.
  std::string* body = nullptr;
  size_t bytes_max = 0;
  uint64_t received = 0;  // of the range, over all tries; of the file, in this one

  // Of this try.
  const HttpOptions* options = nullptr;
  CURL* handle = nullptr;
  std::string content_range;
  bool checked = false;  // the answer's beginning
  SteadyClock::time_point started, last_byte;
  curl_off_t bytes = 0;
  absl::Status status;  // why we broke it off

  std::string Where() const {
    if (!out) return url;
    return absl::StrCat(url, ", bytes ", begin, " to ", begin + out->size() - 1);
  }
  uint64_t next() const { return begin + received; }

  void Start(CURL* new_handle, const HttpOptions& new_options);
  absl::Status Outcome(CURLcode code);
  absl::Status CheckAnswer();
  absl::Status CheckPace(curl_off_t now);
  absl::Status TakeBytes(const char* bytes, size_t size);
  static size_t OnHeader(char* bytes, size_t, size_t size, void* request);
  static size_t OnBody(char* bytes, size_t, size_t size, void* request);
  static int OnProgress(void* request, curl_off_t, curl_off_t now, curl_off_t, curl_off_t);
};

void HttpClient::Request::Start(CURL* new_handle, const HttpOptions& new_options) {
  handle = new_handle;
  options = &new_options;
  content_range.clear();
  checked = false;
  started = last_byte = SteadyClock::now();
  bytes = 0;
  status = absl::OkStatus();
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);  // several threads
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(options->connect_timeout)));
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, this);
  if (out) {
    const std::string range = absl::StrCat(next(), "-", begin + out->size() - 1);
    curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());  // copied
  } else {
    body->clear();
    received = 0;
  }
}

absl::Status HttpClient::Request::Outcome(CURLcode code) {
  if (!status.ok()) return status;
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return absl::InvalidArgumentError("expected an address of http or https");
  }
  if (code == CURLE_OK && !checked) LOCKSTEP_RETURN_IF_ERROR(CheckAnswer());  // an empty body
  if (out && received < out->size() && (code == CURLE_OK || received > 0)) {
    return absl::UnavailableError(
        absl::StrCat("the answer ended after ", received, " of ", out->size(), " bytes"));
  }
  if (code != CURLE_OK) return absl::UnavailableError(curl_easy_strerror(code));
  return absl::OkStatus();
}

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
  const std::string range = absl::StrCat("bytes ", next(), "-", begin + out->size() - 1, "/");
  if (content_range == absl::StrCat(range, file_bytes) || content_range == range + "*") {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("expected the range \"", range, file_bytes,
                                          "\", found \"", content_range, "\""));
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

absl::Status HttpClient::Request::CheckPace(curl_off_t now) {
  if (options->interrupted && options->interrupted()) return absl::CancelledError("interrupted");
  const SteadyClock::time_point time = SteadyClock::now();
  if (now != bytes) last_byte = time;
  bytes = now;
  const auto patience = absl::ToChronoNanoseconds(options->stall_timeout);
  if (time - last_byte >= patience) {
    return absl::UnavailableError(absl::StrCat("the server stalled after ", received, " bytes"));
  }
  const std::chrono::duration<double> beyond = time - started - patience;
  if (beyond.count() * static_cast<double>(options->bytes_per_second_min) >
      static_cast<double>(now)) {
    return absl::UnavailableError(absl::StrCat("the server is too slow: expected at least ",
                                               options->bytes_per_second_min,
                                               " bytes a second, found ", now, " bytes in all"));
  }
  return absl::OkStatus();
}

size_t HttpClient::Request::OnHeader(char* bytes, size_t, size_t size, void* request) {
  auto& self = *static_cast<Request*>(request);
  const absl::string_view line(bytes, size);
  if (absl::StartsWith(line, "HTTP/")) self.content_range.clear();  // of a redirection before
  constexpr absl::string_view kName = "content-range:";
  if (absl::StartsWithIgnoreCase(line, kName)) {
    self.content_range =
        std::string(absl::StripAsciiWhitespace(line.substr(kName.size())).substr(0, 256));
  }
  return size;
}

size_t HttpClient::Request::OnBody(char* bytes, size_t, size_t size, void* request) {
  auto& self = *static_cast<Request*>(request);
  if (!self.checked) self.status = self.CheckAnswer();
  self.checked = true;
  if (self.status.ok()) self.status = self.TakeBytes(bytes, size);
  return self.status.ok() ? size : 0;
}

// Called at least about once a second, also when nothing comes.
int HttpClient::Request::OnProgress(void* request, curl_off_t, curl_off_t now, curl_off_t,
                                    curl_off_t) {
  auto& self = *static_cast<Request*>(request);
  if (self.status.ok()) self.status = self.CheckPace(now);
  return self.status.ok() ? 0 : 1;
}

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) { InitialiseLibrary(); }

HttpClient::~HttpClient() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

void* HttpClient::TakeHandle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.empty()) return curl_easy_init();
  void* handle = idle_.back();
  idle_.pop_back();
  return handle;
}

void HttpClient::ReturnHandle(void* handle) {
  curl_easy_reset(handle);  // keeps the connection
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(handle);
}

absl::Status HttpClient::PerformOnce(Request& request) {
  CURL* handle = TakeHandle();
  if (handle == nullptr) return absl::ResourceExhaustedError("libcurl has no memory");
  request.Start(handle, options_);
  const absl::Status status = request.Outcome(curl_easy_perform(handle));
  ReturnHandle(handle);
  return status;
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
