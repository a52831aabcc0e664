// SPDX-License-Identifier: Apache-2.0
//
// Requests by libcurl's easy interface. See http_client.h.
#include "net/http_client.h"

#include <curl/curl.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/logging.h"
#include "base/status.h"
#include "net/http_range.h"

namespace lockstep::net {
namespace {

constexpr absl::Duration kRetryAfterMax = absl::Minutes(10);

// Once for the process; libcurl asks for it before threads use it.
void InitialiseLibrary() {
  static const CURLcode code = [] {
    // OpenSSL writes to sockets without asking for an error instead of the signal.
    struct sigaction action = {};
    if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
      ::signal(SIGPIPE, SIG_IGN);
    }
    return curl_global_init(CURL_GLOBAL_DEFAULT);
  }();
  LOCKSTEP_CHECK(code == CURLE_OK, "libcurl does not start: {}", curl_easy_strerror(code));
}

// The value of header `name` ("x-y:"), if `line` is it.
std::optional<absl::string_view> ValueOf(absl::string_view line, absl::string_view name) {
  if (!absl::StartsWithIgnoreCase(line, name)) return std::nullopt;
  return absl::StripAsciiWhitespace(line.substr(name.size())).substr(0, 256);
}

}  // namespace

absl::Status StatusOfCode(int code) {
  if (code >= 200 && code < 300) return absl::OkStatus();
  const std::string message = absl::StrCat("the server answered ", code);
  switch (code) {
    case 401:
    case 403:
      return absl::PermissionDeniedError(message);
    case 404:
    case 410:
      return absl::NotFoundError(message);
    case 413:
    case 507:
      return absl::ResourceExhaustedError(message);
    case 416:
      return absl::DataLossError(absl::StrCat(message, ": the file there ends before these bytes"));
    case 429:
      return absl::UnavailableError(message);
    default:
      if (code >= 500) return absl::UnavailableError(message);
      if (code >= 300 && code < 400) {
        return absl::FailedPreconditionError(
            absl::StrCat(message, ": it redirects, which is not followed here"));
      }
      return absl::FailedPreconditionError(message);
  }
}

absl::Status UnexpectedCode(int code) {
  const absl::Status status = StatusOfCode(code);
  if (!status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat("the server answered ", code));
}

// One exchange under way.
class HttpClient::Transfer {
 public:
  Transfer(HttpClient& client, const HttpExchange& exchange)
      : client_(client), options_(client.options_), exchange_(exchange) {}
  ~Transfer() { curl_slist_free_all(headers_); }

  absl::StatusOr<HttpHead> Perform(CURL* handle) {
    handle_ = handle;
    started_ = last_byte_ = options_.clock->Monotonic();
    SetUp();
    const CURLcode code = curl_easy_perform(handle);
    if (code == CURLE_OK && status_.ok()) Begin();  // an empty body
    LOCKSTEP_RETURN_IF_ERROR(Outcome(code));
    return head_;
  }

 private:
  void SetUp();
  absl::Status Outcome(CURLcode code) const;
  void Begin();
  absl::Status CheckPace(curl_off_t now);
  absl::Status Pay(size_t bytes);
  static size_t OnHeader(char* bytes, size_t, size_t size, void* transfer);
  static size_t OnBody(char* bytes, size_t, size_t size, void* transfer);
  static size_t OnRead(char* bytes, size_t, size_t size, void* transfer);
  static int OnSeek(void* transfer, curl_off_t offset, int origin);
  static int OnProgress(void* transfer, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up);

  HttpClient& client_;
  const HttpOptions& options_;
  const HttpExchange& exchange_;
  CURL* handle_ = nullptr;
  curl_slist* headers_ = nullptr;
  HttpHead head_;
  bool begun_ = false;     // the answer's body, or its end
  uint64_t received_ = 0;  // of the answer's body
  uint64_t sent_ = 0;      // of the request's
  absl::Duration started_, last_byte_;
  absl::Duration paused_ = absl::ZeroDuration();  // for the rate limiter
  curl_off_t bytes_ = 0;                          // either way
  absl::Status status_;                           // why we broke it off
};

void HttpClient::Transfer::SetUp() {
  curl_easy_setopt(handle_, CURLOPT_URL, exchange_.url.c_str());
  curl_easy_setopt(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle_, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  // A signed request is for one place.
  const bool follow = options_.redirects_max > 0 && exchange_.method == "GET";
  curl_easy_setopt(handle_, CURLOPT_FOLLOWLOCATION, follow ? 1L : 0L);
  curl_easy_setopt(handle_, CURLOPT_MAXREDIRS, static_cast<long>(options_.redirects_max));
  curl_easy_setopt(handle_, CURLOPT_NOSIGNAL, 1L);  // several threads
  curl_easy_setopt(handle_, CURLOPT_USERAGENT, "lockstep");
  curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(options_.connect_timeout)));
  if (!options_.ca_file.empty()) {
    curl_easy_setopt(handle_, CURLOPT_CAINFO, options_.ca_file.c_str());
  }
  // Small pieces where the pace is ours to keep.
  curl_easy_setopt(handle_, CURLOPT_BUFFERSIZE, options_.rate_limiter ? 16L << 10 : 256L << 10);
  for (const std::string& header : exchange_.headers) {
    headers_ = curl_slist_append(headers_, header.c_str());
  }
  curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_);
  curl_easy_setopt(handle_, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(handle_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(handle_, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(handle_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(handle_, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle_, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(handle_, CURLOPT_XFERINFODATA, this);
  if (exchange_.method == "PUT") {
    curl_easy_setopt(handle_, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle_, CURLOPT_INFILESIZE_LARGE,
                     static_cast<curl_off_t>(exchange_.body_bytes));
    curl_easy_setopt(handle_, CURLOPT_READFUNCTION, OnRead);
    curl_easy_setopt(handle_, CURLOPT_READDATA, this);
    curl_easy_setopt(handle_, CURLOPT_SEEKFUNCTION, OnSeek);
    curl_easy_setopt(handle_, CURLOPT_SEEKDATA, this);
  }
}

absl::Status HttpClient::Transfer::Outcome(CURLcode code) const {
  if (!status_.ok()) return status_;
  if (code == CURLE_OK) return absl::OkStatus();
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return absl::InvalidArgumentError("expected an address of http or https");
  }
  if (received_ == 0) return absl::UnavailableError(curl_easy_strerror(code));
  const std::string of =
      head_.content_length ? absl::StrCat(" of ", *head_.content_length) : std::string();
  return absl::UnavailableError(absl::StrCat("the answer ended after ", received_, of, " bytes"));
}

void HttpClient::Transfer::Begin() {
  if (std::exchange(begun_, true)) return;
  long code = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &code);
  head_.code = static_cast<int>(code);
  if (exchange_.on_head) status_ = exchange_.on_head(head_);
}

absl::Status HttpClient::Transfer::CheckPace(curl_off_t now) {
  if (options_.interrupted && options_.interrupted()) return absl::CancelledError("interrupted");
  const absl::Duration time = options_.clock->Monotonic();
  if (now != bytes_) last_byte_ = time;
  bytes_ = now;
  if (time - last_byte_ >= options_.stall_timeout) {
    return absl::UnavailableError(absl::StrCat("the server stalled after ", received_, " bytes"));
  }
  const absl::Duration beyond = time - started_ - paused_ - options_.stall_timeout;
  if (absl::ToDoubleSeconds(beyond) * static_cast<double>(options_.bytes_per_second_min) >
      static_cast<double>(now)) {
    return absl::UnavailableError(absl::StrCat("the server is too slow: expected at least ",
                                               options_.bytes_per_second_min,
                                               " bytes a second, found ", now, " bytes in all"));
  }
  return absl::OkStatus();
}

// Keeps to the cap on bandwidth. What we wait here is not the server's fault.
absl::Status HttpClient::Transfer::Pay(size_t bytes) {
  if (!options_.rate_limiter) return absl::OkStatus();
  const absl::Duration wait = options_.rate_limiter->Take(bytes);
  if (wait <= absl::ZeroDuration()) return absl::OkStatus();
  const absl::Duration before = options_.clock->Monotonic();
  LOCKSTEP_RETURN_IF_ERROR(client_.Sleep(wait));
  last_byte_ = options_.clock->Monotonic();
  paused_ += last_byte_ - before;
  return absl::OkStatus();
}

size_t HttpClient::Transfer::OnHeader(char* bytes, size_t, size_t size, void* transfer) {
  HttpHead& head = static_cast<Transfer*>(transfer)->head_;
  const absl::string_view line(bytes, size);
  if (absl::StartsWith(line, "HTTP/")) head = {};  // after a redirection, or "100 Continue"
  if (const auto length = ValueOf(line, "content-length:")) {
    head.content_length = ParseDecimal(*length);
  } else if (const auto range = ValueOf(line, "content-range:")) {
    head.content_range = std::string(*range);
  } else if (const auto offset = ValueOf(line, "upload-offset:")) {
    head.upload_offset = ParseDecimal(*offset);
  } else if (const auto after = ValueOf(line, "retry-after:")) {
    if (const auto seconds = ParseDecimal(*after)) {
      const auto most = static_cast<uint64_t>(absl::ToInt64Seconds(kRetryAfterMax));
      head.retry_after = absl::Seconds(static_cast<int64_t>(std::min(*seconds, most)));
    }
  }
  return size;
}

size_t HttpClient::Transfer::OnBody(char* bytes, size_t, size_t size, void* transfer) {
  auto& self = *static_cast<Transfer*>(transfer);
  self.Begin();
  if (self.status_.ok() && self.exchange_.on_bytes) {
    self.status_ = self.exchange_.on_bytes(AsBytes(absl::string_view(bytes, size)));
  }
  self.received_ += size;
  if (self.status_.ok()) self.status_ = self.Pay(size);
  return self.status_.ok() ? size : 0;
}

size_t HttpClient::Transfer::OnRead(char* bytes, size_t, size_t size, void* transfer) {
  auto& self = *static_cast<Transfer*>(transfer);
  size = std::min<uint64_t>(size, self.exchange_.body_bytes - self.sent_);
  if (size == 0) return 0;
  self.status_ =
      self.exchange_.body(self.sent_, std::span(reinterpret_cast<uint8_t*>(bytes), size));
  self.sent_ += size;
  if (self.status_.ok()) self.status_ = self.Pay(size);
  return self.status_.ok() ? size : CURL_READFUNC_ABORT;
}

// A connection that was kept may turn out to be closed when a request has been begun on it.
int HttpClient::Transfer::OnSeek(void* transfer, curl_off_t offset, int origin) {
  auto& self = *static_cast<Transfer*>(transfer);
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_FAIL;
  self.sent_ = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

// Called at least about once a second, also when nothing comes.
int HttpClient::Transfer::OnProgress(void* transfer, curl_off_t, curl_off_t down, curl_off_t,
                                     curl_off_t up) {
  auto& self = *static_cast<Transfer*>(transfer);
  if (self.status_.ok()) self.status_ = self.CheckPace(down + up);
  return self.status_.ok() ? 0 : 1;
}

HttpClient::HttpClient(HttpOptions options)
    : options_(std::move(options)), random_(std::random_device{}()) {
  InitialiseLibrary();
}

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

absl::StatusOr<HttpHead> HttpClient::Exchange(const HttpExchange& exchange) {
  CURL* handle = TakeHandle();
  if (handle == nullptr) return absl::ResourceExhaustedError("libcurl has no memory");
  const auto give_back = absl::MakeCleanup([&] { ReturnHandle(handle); });
  return Transfer(*this, exchange).Perform(handle);
}

// In pieces, so that an interrupt does not wait for the end.
absl::Status HttpClient::Sleep(absl::Duration duration) const {
  while (duration > absl::ZeroDuration()) {
    if (options_.interrupted && options_.interrupted()) return absl::CancelledError("interrupted");
    const absl::Duration piece = std::min(duration, absl::Milliseconds(100));
    options_.sleep ? options_.sleep(piece) : absl::SleepFor(piece);
    duration -= piece;
  }
  return absl::OkStatus();
}

double HttpClient::Random() {
  if (options_.random) return options_.random();
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::uniform_real_distribution<double>()(random_);
}

absl::Status HttpClient::WaitBeforeRetry(int tries_done, absl::Duration retry_after) {
  const absl::Duration full = std::min(
      options_.backoff * (int64_t{1} << std::min(tries_done - 1, 20)), options_.backoff_max);
  const absl::Duration own = full * (0.5 + 0.5 * Random());
  return Sleep(std::max(own, retry_after));
}

absl::Status HttpClient::Repeat(const std::string& where, Try once) {
  for (int tries = 1;; ++tries) {
    absl::Duration retry_after = absl::ZeroDuration();
    const absl::Status status = once(&retry_after);
    if (status.ok()) return status;
    if (!absl::IsUnavailable(status) || tries >= options_.tries_max) {
      return WithContext(status, where);
    }
    LOCKSTEP_RETURN_IF_ERROR(WaitBeforeRetry(tries, retry_after), where);
  }
}

absl::Status HttpClient::ReadRange(const std::string& url, uint64_t begin, uint64_t size,
                                   std::span<uint8_t> out) {
  if (out.empty()) return absl::OkStatus();
  const uint64_t last = begin + out.size() - 1;
  uint64_t received = 0;  // over all tries
  const auto check_head = [&](const HttpHead& head) -> absl::Status {
    if (head.code == 200) {
      if (begin == 0 && out.size() == size && received == 0) return absl::OkStatus();
      return absl::FailedPreconditionError(
          "the server ignores ranges: expected an answer of 206, found 200; use a server that "
          "supports range requests");
    }
    if (head.code != 206) return UnexpectedCode(head.code);
    const std::string range = absl::StrCat("bytes ", begin + received, "-", last, "/");
    if (head.content_range == absl::StrCat(range, size) || head.content_range == range + "*") {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("expected the range \"", range, size, "\", found \"",
                                            head.content_range, "\""));
  };
  const auto take = [&](ByteSpan bytes) -> absl::Status {
    if (bytes.size() > out.size() - received) {
      return absl::DataLossError(
          absl::StrCat("the server sends more than the ", out.size(), " bytes asked for"));
    }
    std::memcpy(out.data() + received, bytes.data(), bytes.size());
    received += bytes.size();
    return absl::OkStatus();
  };
  return Repeat(absl::StrCat(url, ", bytes ", begin, " to ", last),
                [&](absl::Duration* retry_after) -> absl::Status {
                  HttpExchange exchange{.url = url};
                  exchange.headers = {absl::StrCat("Range: bytes=", begin + received, "-", last)};
                  exchange.on_head = [&](const HttpHead& head) {
                    *retry_after = head.retry_after;
                    return check_head(head);
                  };
                  exchange.on_bytes = take;
                  LOCKSTEP_RETURN_IF_ERROR(Exchange(exchange).status());
                  if (received == out.size()) return absl::OkStatus();
                  return absl::UnavailableError(absl::StrCat("the answer ended after ", received,
                                                             " of ", out.size(), " bytes"));
                });
}

absl::StatusOr<std::string> HttpClient::ReadFile(const std::string& url, size_t bytes_max) {
  std::string body;
  LOCKSTEP_RETURN_IF_ERROR(Repeat(url, [&](absl::Duration* retry_after) {
    body.clear();
    HttpExchange exchange{.url = url};
    exchange.on_head = [&](const HttpHead& head) {
      *retry_after = head.retry_after;
      return head.code == 200 ? absl::OkStatus() : UnexpectedCode(head.code);
    };
    exchange.on_bytes = [&](ByteSpan bytes) {
      if (bytes.size() > bytes_max - body.size()) {
        return absl::ResourceExhaustedError(
            absl::StrCat("more than the ", bytes_max, " bytes allowed"));
      }
      body.append(AsChars(bytes).data(), bytes.size());
      return absl::OkStatus();
    };
    return Exchange(exchange).status();
  }));
  return body;
}

}  // namespace lockstep::net
