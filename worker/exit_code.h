// SPDX-License-Identifier: Apache-2.0
//
// What lockstep-worker ends with. The same numbers as of every program of this project.
#ifndef LOCKSTEP_WORKER_EXIT_CODE_H_
#define LOCKSTEP_WORKER_EXIT_CODE_H_

#include "absl/status/status.h"

namespace lockstep::worker {

enum ExitCode {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitMismatch = 3,  // `run --once`: its lease ended in a mismatch
  kExitNetwork = 4,
  kExitBadArtifact = 5,
  kExitInterrupted = 130,
};

// DataLoss: 5; Unavailable: 4; Cancelled: 130; InvalidArgument (of flags and configuration): 2;
// others: 1.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kDataLoss:
      return kExitBadArtifact;
    case absl::StatusCode::kUnavailable:
      return kExitNetwork;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitFailure;
  }
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_EXIT_CODE_H_
