// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this project end with.
#ifndef LOCKSTEP_BASE_EXIT_CODE_H_
#define LOCKSTEP_BASE_EXIT_CODE_H_

#include "absl/status/status.h"

namespace lockstep {

enum ExitCode {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,        // the command line or the configuration makes no sense
  kExitMismatch = 3,     // a replay, or a log, says that a step is not as published
  kExitNetwork = 4,      // what may work later
  kExitBadArtifact = 5,  // a file is not what it should be
  kExitInterrupted = 130,
};

// DataLoss: 5; Unavailable: 4; Cancelled: 130; other errors: 1.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
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

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_EXIT_CODE_H_
