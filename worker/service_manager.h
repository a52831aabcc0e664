// SPDX-License-Identifier: Apache-2.0
//
// What systemd wants to hear (sd_notify(3)): a datagram to the socket that $NOTIFY_SOCKET names.
#ifndef LOCKSTEP_WORKER_SERVICE_MANAGER_H_
#define LOCKSTEP_WORKER_SERVICE_MANAGER_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::worker {

class ServiceManager {
 public:
  // From $NOTIFY_SOCKET and, if $WATCHDOG_PID is not another process, $WATCHDOG_USEC, which are
  // taken out of the environment, so that no child speaks for the daemon. Before threads are
  // started.
  static ServiceManager FromEnvironment();

  // "READY=1", "STATUS=...", "WATCHDOG=1", "STOPPING=1". Does nothing without a manager; a message
  // that gets lost is lost.
  void Notify(absl::string_view message) const;

  // How often it wants to hear WATCHDOG=1; nullopt: not at all.
  std::optional<absl::Duration> watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  std::optional<absl::Duration> watchdog_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SERVICE_MANAGER_H_
