// SPDX-License-Identifier: Apache-2.0
//
// Service time: the milliseconds for which this data directory has been served, over all starts.
// Leases, backoffs and due times are in it. It never goes back, no setting of the machine's clock
// moves it, and it stands still while nobody serves: a lease does not run out while its holder has
// nobody to send a heartbeat to. For people there is the time of day beside it.

#ifndef LOCKSTEP_COORDINATOR_STORE_SERVICE_TIME_H_
#define LOCKSTEP_COORDINATOR_STORE_SERVICE_TIME_H_

#include <cstdint>

#include "absl/time/time.h"
#include "base/clock.h"

namespace lockstep::coordinator {

// Safe from any thread.
class ServiceTime {
 public:
  // Goes on from `base_ms`, the last service time that was stored (StoreView::ServiceMs), which is
  // at most a moment's idleness behind. `clock` must outlive this.
  ServiceTime(int64_t base_ms, const Clock& clock)
      : base_ms_(base_ms), start_(clock.Monotonic()), clock_(clock) {}

  int64_t NowMs() const {
    return base_ms_ + absl::ToInt64Milliseconds(clock_.Monotonic() - start_);
  }
  // The time of day, in ms since 1970, for records that people read.
  int64_t UnixMs() const { return absl::ToUnixMillis(clock_.Now()); }

 private:
  const int64_t base_ms_;
  const absl::Duration start_;
  const Clock& clock_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_STORE_SERVICE_TIME_H_
