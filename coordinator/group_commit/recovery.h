// SPDX-License-Identifier: Apache-2.0
//
// Store and log brought together at the start, or found not to belong together.

#ifndef LOCKSTEP_COORDINATOR_GROUP_COMMIT_RECOVERY_H_
#define LOCKSTEP_COORDINATOR_GROUP_COMMIT_RECOVERY_H_

#include "absl/status/status.h"
#include "coordinator/log/log_writer.h"
#include "coordinator/store/store.h"

namespace lockstep::coordinator {

// Appends to the log the entries that only the store has, which a crash between the two leaves.
// FailedPrecondition, and nothing is changed, if one of the two was restored from an old backup: a
// store with fewer entries than the log, or a log with fewer than the store knew it to have.
// DataLoss if the entries that both have are not the same: the log's root tells.
absl::Status RecoverLog(Store& store, LogWriter& log);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_GROUP_COMMIT_RECOVERY_H_
