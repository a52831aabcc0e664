// SPDX-License-Identifier: Apache-2.0
//
// A cap on bandwidth that several transfers share.
#ifndef LOCKSTEP_NET_RATE_LIMITER_H_
#define LOCKSTEP_NET_RATE_LIMITER_H_

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "absl/time/time.h"
#include "base/clock.h"

namespace lockstep::net {

// Safe from any thread.
class RateLimiter {
 public:
  // `bytes_per_second` is at least 1; `clock` outlives the limiter.
  explicit RateLimiter(uint64_t bytes_per_second, const Clock& clock = RealClock())
      : bytes_per_second_(static_cast<double>(bytes_per_second)), clock_(clock) {}

  // Counts bytes that went over the wire; how long the caller is to wait before it moves more. What
  // was not used in the last tenth of a second may be caught up with, and no more than that.
  absl::Duration Take(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const absl::Duration now = clock_.Monotonic();
    free_at_ = std::max(free_at_, now - absl::Milliseconds(100)) +
               absl::Seconds(static_cast<double>(bytes) / bytes_per_second_);
    return std::max(free_at_ - now, absl::ZeroDuration());
  }

 private:
  const double bytes_per_second_;
  const Clock& clock_;
  std::mutex mutex_;
  absl::Duration free_at_ = -absl::InfiniteDuration();  // when all so far is paid for
};

}  // namespace lockstep::net

#endif  // LOCKSTEP_NET_RATE_LIMITER_H_
