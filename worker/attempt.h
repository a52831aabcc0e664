// SPDX-License-Identifier: Apache-2.0
//
// The id of an attempt, to which leases belong. It outlives a kill, so that the daemon that starts
// again goes on with its lease; and it does not travel: a folder that was copied to another place
// or machine, or a machine that was started again, begins another attempt. Then the coordinator
// sees two attempts of one key (KEY_IN_USE) instead of one that contradicts itself.
#ifndef LOCKSTEP_WORKER_ATTEMPT_H_
#define LOCKSTEP_WORKER_ATTEMPT_H_

#include <string>

#include "absl/status/statusor.h"

namespace lockstep::worker {

// FOLDER/attempt, made new unless it is of this place (machine, its start, folder). 16 bytes. The
// place is `machine` and the folder's identity on its file system.
absl::StatusOr<std::string> CurrentAttempt(const std::string& folder, const std::string& machine);

// Of this machine since its start: /etc/machine-id and the kernel's boot id.
std::string ThisMachine();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ATTEMPT_H_
