// SPDX-License-Identifier: Apache-2.0
//
// The system's clocks behind the interface of clock.h.

#include "base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration Monotonic() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

const Clock& RealClock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace lockstep
