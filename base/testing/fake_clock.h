// SPDX-License-Identifier: Apache-2.0
//
// A clock that stands still until a test moves it. For tests only.

#ifndef LOCKSTEP_BASE_TESTING_FAKE_CLOCK_H_
#define LOCKSTEP_BASE_TESTING_FAKE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace lockstep {

class FakeClock final : public Clock {
 public:
  // The default is 2000-01-01 00:00 UTC, an arbitrary time that prints well.
  explicit FakeClock(absl::Time now = absl::FromUnixSeconds(946684800)) : now_(now) {}

  absl::Time Now() const override {
    const absl::MutexLock lock(&mutex_);
    return now_;
  }

  absl::Duration Monotonic() const override {
    const absl::MutexLock lock(&mutex_);
    return monotonic_;
  }

  // Time passes: both clocks move on by `duration`, which is not negative.
  void Advance(absl::Duration duration) {
    const absl::MutexLock lock(&mutex_);
    now_ += duration;
    monotonic_ += duration;
  }

  // Somebody sets the time of day; no time passes.
  void SetNow(absl::Time now) {
    const absl::MutexLock lock(&mutex_);
    now_ = now;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  absl::Duration monotonic_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_TESTING_FAKE_CLOCK_H_
