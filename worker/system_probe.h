// SPDX-License-Identifier: Apache-2.0
//
// What the machine says of itself, for the guest's rules; and how a guest makes itself small.
// Linux.
#ifndef LOCKSTEP_WORKER_SYSTEM_PROBE_H_
#define LOCKSTEP_WORKER_SYSTEM_PROBE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "worker/guest_rules.h"

namespace lockstep::worker {

class SystemProbe {
 public:
  virtual ~SystemProbe() = default;
  // Not for several threads at once. The load is that since the call before; the first knows none.
  virtual MachineState Read() = 0;
};

struct LinuxProbeOptions {
  std::string root;         // before /proc, /sys and /dev: for tests
  std::string disk_folder;  // on the file system that is looked at
  const Clock* clock = &RealClock();
  // CPU time that this process has used. Empty: as the system says.
  std::function<absl::Duration()> own_cpu_time = nullptr;
  absl::TimeZone time_zone = absl::LocalTimeZone();
};

// User activity: the last access to a terminal (/dev/tty*, /dev/pts/*): what a graphical session
// does not read from one is not seen. Battery: /sys/class/power_supply. Load: /proc/stat, less this
// process's own. A file that is not there or unreadable leaves its rule without an answer.
std::unique_ptr<SystemProbe> MakeLinuxProbe(const LinuxProbeOptions& options);

// Lowest priority for CPU (nice 19) and disk (the idle class), of this process and threads that it
// starts later.
absl::Status LowerPriority();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SYSTEM_PROBE_H_
