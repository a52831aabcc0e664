// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before trying again: twice as long each time up to a limit, a random half of it
// left off, so that workers who lost the same coordinator do not come back together.
#ifndef LOCKSTEP_WORKER_BACKOFF_H_
#define LOCKSTEP_WORKER_BACKOFF_H_

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace lockstep::worker {

// Not for several threads at once.
class Backoff {
 public:
  struct Options {
    absl::Duration first = absl::Seconds(1);
    absl::Duration most = absl::Minutes(10);
  };
  // random: uniform in [0, 1).
  Backoff(const Options& options, std::function<double()> random)
      : options_(options), random_(std::move(random)), next_(options.first) {}

  // The wait after one more failure: between half of the full wait and all of it.
  absl::Duration Next() {
    const absl::Duration full = std::min(next_, options_.most);
    next_ = std::min(2 * full, options_.most);
    return full / 2 + full / 2 * random_();
  }
  // It worked.
  void Reset() { next_ = options_.first; }

 private:
  const Options options_;
  const std::function<double()> random_;
  absl::Duration next_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BACKOFF_H_
