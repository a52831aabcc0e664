// SPDX-License-Identifier: Apache-2.0
//
// When a guest stays out of its host's way: a pure function of what the machine says and of what
// its owner wants. Asking the machine is system_probe.h's business, obeying the daemon's.
#ifndef LOCKSTEP_WORKER_GUEST_RULES_H_
#define LOCKSTEP_WORKER_GUEST_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::worker {

// Of each day, by the machine's local time: [begin, end) in minutes since midnight. One whose end
// is not after its begin goes on over midnight.
struct Hours {
  int begin = 0;
  int end = 0;
  bool operator==(const Hours&) const = default;
};

// "22:00-07:00". InvalidArgument for anything else, and for two equal times.
absl::StatusOr<Hours> ParseHours(absl::string_view text);

struct GuestOptions {
  bool pause_on_activity = true;  // somebody is at the machine
  absl::Duration idle_min = absl::Minutes(5);
  bool pause_on_battery = true;
  double other_load_max = 0.5;    // of all CPUs, by other programs; 1: never mind them
  std::vector<Hours> hours = {};  // work only then; empty: always
  uint64_t disk_free_bytes_min = uint64_t{5} << 30;
  // Once paused for load, work goes on only when it has fallen to this part of the limit, so that
  // the guest does not flutter about it.
  double load_hysteresis = 0.7;
};

// What the machine says now. nullopt: it does not say, and the rule does not apply.
struct MachineState {
  std::optional<absl::Duration> user_idle;  // since somebody last typed or clicked
  std::optional<bool> on_battery;
  std::optional<double> other_load;  // 0 to 1, of all CPUs, without this process
  std::optional<uint64_t> disk_free_bytes;
  int minute_of_day = 0;  // local
};

enum class PauseReason { kNone, kActivity, kBattery, kLoad, kSchedule, kDisk };
// "", "user activity", "on battery", ...
absl::string_view PauseReasonName(PauseReason reason);

struct GuestDecision {
  PauseReason reason = PauseReason::kNone;
  std::string detail = {};  // for people: "somebody used the machine 40s ago"
  bool paused() const { return reason != PauseReason::kNone; }
};

// The first rule that says so, of: disk, battery, schedule, activity, load. `before` is the last
// decision, for hysteresis.
GuestDecision DecideGuest(const GuestOptions& options, const MachineState& machine,
                          PauseReason before);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_GUEST_RULES_H_
