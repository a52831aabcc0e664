// SPDX-License-Identifier: Apache-2.0
//
// Signed requests that were seen lately, so that a copy of one is refused.
#ifndef LOCKSTEP_COORDINATOR_HTTP_NONCE_MEMORY_H_
#define LOCKSTEP_COORDINATOR_HTTP_NONCE_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::coordinator {

// Any thread may call.
class NonceMemory {
 public:
  using Nonce = std::pair<std::array<uint8_t, 32>, std::array<uint8_t, 16>>;  // with its key

  NonceMemory(size_t count_max, absl::Duration lifetime)
      : count_max_(count_max), lifetime_(lifetime) {}

  // `now` is monotonic. AlreadyExists if it was added within the lifetime; Unavailable if too many
  // were.
  absl::Status Add(const Nonce& nonce, absl::Duration now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!by_age_.empty() && now - by_age_.front().first > lifetime_) {
      nonces_.erase(by_age_.front().second);
      by_age_.pop_front();
    }
    if (nonces_.contains(nonce)) return absl::AlreadyExistsError("this request was seen before");
    if (nonces_.size() >= count_max_) return absl::UnavailableError("too many signed requests");
    by_age_.emplace_back(now, nonce);
    nonces_.insert(nonce);
    return absl::OkStatus();
  }

 private:
  const size_t count_max_;
  const absl::Duration lifetime_;
  std::mutex mutex_;  // over all that follows
  std::deque<std::pair<absl::Duration, Nonce>> by_age_;
  std::set<Nonce> nonces_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_NONCE_MEMORY_H_
