// SPDX-License-Identifier: Apache-2.0
//
// So many calls a second for each address, and some more at once; and whose address it is.

#ifndef LOCKSTEP_COORDINATOR_SERVICE_ADDRESS_LIMITER_H_
#define LOCKSTEP_COORDINATOR_SERVICE_ADDRESS_LIMITER_H_

#include <cstddef>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace lockstep::coordinator {

// gRPC's name of a peer, "ipv4:192.0.2.1:5000" or "ipv6:%5B2001:db8::1%5D:5000", as an address
// without its port. Of IPv6, the /64 network, since each of its holders has all of it. Other kinds
// as they are.
std::string AddressOfPeer(absl::string_view peer);
// The same of an address in numbers, such as a proxy names.
std::string AddressGroup(absl::string_view address);
bool IsLoopback(absl::string_view address);

struct AddressLimits {
  double calls_per_second = 50;
  double calls_at_once = 200;
  size_t addresses_max = 65'536;  // remembered; beyond them, strangers share one limit
  bool limit_loopback = false;
};

// Safe from any thread.
class AddressLimiter {
 public:
  explicit AddressLimiter(const AddressLimits& limits, const Clock& clock = RealClock())
      : limits_(limits), clock_(clock) {}

  // Counts a call; false if it is one too many.
  bool Take(const std::string& address);

 private:
  struct Bucket {
    double calls = 0;  // left
    absl::Duration at;
  };
  void Forget(absl::Duration now);
  Bucket Filled(const Bucket& bucket, absl::Duration now) const;

  const AddressLimits limits_;
  const Clock& clock_;
  std::mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVICE_ADDRESS_LIMITER_H_
