// SPDX-License-Identifier: Apache-2.0
//
// Requests over HTTP(S), by libcurl: single exchanges, byte ranges and small files. Nothing that
// arrives is trusted: callers check digests. No caching and no choice of mirrors
// (artifact_fetch.h).
#ifndef LOCKSTEP_NET_HTTP_CLIENT_H_
#define LOCKSTEP_NET_HTTP_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "net/rate_limiter.h"

namespace lockstep::net {

struct HttpOptions {
  // Of a request that failed in a way that may pass: no answer, a broken connection, 429, 5xx. A
  // try goes on from the last byte received.
  int tries_max = 4;
  // Before the second try; twice that each time, up to backoff_max. A random part of it, at least
  // half, is waited, so that many clients do not come back at once; longer if the server says so
  // (Retry-After, at most ten minutes).
  absl::Duration backoff = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Seconds(30);
  absl::Duration connect_timeout = absl::Seconds(20);
  absl::Duration stall_timeout = absl::Seconds(30);  // without a byte; noticed within a second
  int64_t bytes_per_second_min = 1024;  // on average, after the first stall_timeout of a try
  int redirects_max = 5;  // to http and https only; 0: an answer that redirects is an error
  std::function<bool()> interrupted = nullptr;  // asked at least once a second; may be empty
  std::shared_ptr<RateLimiter> rate_limiter = nullptr;  // shared with whom it is given to
  std::string ca_file = {};  // certificates to trust, PEM; empty: the system's
  // For tests. What each gives must be safe from any thread.
  const Clock* clock = &RealClock();
  std::function<void(absl::Duration)> sleep = nullptr;  // empty: really
  std::function<double()> random = nullptr;  // uniform in [0, 1); empty: seeded by chance
};

// The beginning of an answer.
struct HttpHead {
  int code = 0;
  std::optional<uint64_t> content_length = std::nullopt;
  std::string content_range;  // empty: none
  std::optional<uint64_t> upload_offset = std::nullopt;
  absl::Duration retry_after = absl::ZeroDuration();
};

// Unavailable: 429, 5xx but 507. NotFound: 404, 410. PermissionDenied: 401, 403. DataLoss: 416.
// ResourceExhausted: 413, 507. FailedPrecondition: any other but 2xx, which is OK.
absl::Status StatusOfCode(int code);
// The same, for who did not ask for this answer: never OK.
absl::Status UnexpectedCode(int code);

// One request and its answer.
struct HttpExchange {
  std::string url;
  std::string method = "GET";             // or "PUT"
  std::vector<std::string> headers = {};  // "Name: value"
  uint64_t body_bytes = 0;                // of a PUT
  // Fills the span with the body's bytes from `offset` on, all of it.
  std::function<absl::Status(uint64_t offset, std::span<uint8_t> out)> body = nullptr;
  // Called once before the first byte, and without any; an error breaks the exchange off.
  std::function<absl::Status(const HttpHead&)> on_head = nullptr;
  std::function<absl::Status(ByteSpan)> on_bytes = nullptr;  // empty: they are dropped
};

// Any thread may call. Connections are kept and used again. The first client makes the process
// ignore SIGPIPE, unless it has a handler for it.
//
// Errors name the address. Unavailable: it may work later (no answer, stalled, cut off, 429, 5xx).
// NotFound: 404, 410. PermissionDenied: 401, 403. FailedPrecondition: a server that ignores ranges
// (200 for a part of a file), any other answer. DataLoss: other bytes than asked for, or a file
// that ends before them. Cancelled: interrupted.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const HttpOptions& options() const { return options_; }

  // Once, whatever comes. Any answer that ends as it says is OK, with its code; otherwise the first
  // error of a callback, Unavailable, or Cancelled.
  absl::StatusOr<HttpHead> Exchange(const HttpExchange& exchange);

  // Waits before another try, after `tries_done` of them, at least 1; Cancelled if interrupted.
  absl::Status WaitBeforeRetry(int tries_done, absl::Duration retry_after = absl::ZeroDuration());

  // Bytes begin ... begin + out.size() - 1 of a file of `size` bytes, and no others: an answer that
  // is not just these is broken off as soon as that shows.
  absl::Status ReadRange(const std::string& url, uint64_t begin, uint64_t size,
                         std::span<uint8_t> out);

  // A whole file; more than bytes_max is ResourceExhausted.
  absl::StatusOr<std::string> ReadFile(const std::string& url, size_t bytes_max);

 private:
  class Transfer;
  using Try = absl::FunctionRef<absl::Status(absl::Duration* retry_after)>;
  absl::Status Repeat(const std::string& where, Try once);
  absl::Status Sleep(absl::Duration duration) const;
  double Random();
  void* TakeHandle();
  void ReturnHandle(void* handle);

  const HttpOptions options_;
  std::mutex mutex_;         // over all that follows
  std::vector<void*> idle_;  // CURL handles, each with its connection
  std::mt19937_64 random_;
};

}  // namespace lockstep::net

#endif  // LOCKSTEP_NET_HTTP_CLIENT_H_
