// SPDX-License-Identifier: Apache-2.0
//
// Byte ranges and small files over HTTP(S), by libcurl. Nothing that arrives is trusted: callers
// check digests. No caching and no choice of mirrors.
#ifndef LOCKSTEP_ENGINE_DATA_HTTP_CLIENT_H_
#define LOCKSTEP_ENGINE_DATA_HTTP_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep::engine {

struct HttpOptions {
  // Of a request that failed in a way that may pass: no answer, a broken connection, 429, 5xx. A
  // try goes on from the last byte received.
  int tries_max = 4;
  absl::Duration backoff = absl::Milliseconds(500);  // before the second try; twice that each time
  absl::Duration connect_timeout = absl::Seconds(20);
  absl::Duration stall_timeout = absl::Seconds(30);  // without a byte; noticed within a second
  int64_t bytes_per_second_min = 1024;  // on average, after the first stall_timeout of a try
  std::function<bool()> interrupted = nullptr;  // asked at least once a second; may be empty
};

// Any thread may call. Connections are kept and used again.
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

  // Bytes begin ... begin + out.size() - 1 of a file of `size` bytes, and no others: an answer that
  // is not just these is broken off as soon as that shows.
  absl::Status ReadRange(const std::string& url, uint64_t begin, uint64_t size,
                         std::span<uint8_t> out);

  // A whole file; more than bytes_max is ResourceExhausted.
  absl::StatusOr<std::string> ReadFile(const std::string& url, size_t bytes_max);

 private:
  struct Request;
  absl::Status Perform(Request& request);
  absl::Status PerformOnce(Request& request);
  absl::Status Wait(int tries_done) const;
  void* TakeHandle();
  void ReturnHandle(void* handle);

  const HttpOptions options_;
  std::mutex mutex_;         // over all that follows
  std::vector<void*> idle_;  // CURL handles, each with its connection
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_HTTP_CLIENT_H_
