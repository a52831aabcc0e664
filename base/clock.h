// SPDX-License-Identifier: Apache-2.0
//
// Time as something that is passed in, so that tests decide it (testing/fake_clock.h). Nothing on
// the state path reads a clock.

#ifndef LOCKSTEP_BASE_CLOCK_H_
#define LOCKSTEP_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace lockstep {

// Safe from any thread.
class Clock {
 public:
  virtual ~Clock() = default;

  // The time of day, for people and records. It may jump, also backwards.
  virtual absl::Time Now() const = 0;

  // Time since a moment that stays the same as long as the process lives, for deadlines and
  // durations. It never goes backwards.
  virtual absl::Duration Monotonic() const = 0;
};

// The system's clocks.
const Clock& RealClock();

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_CLOCK_H_
