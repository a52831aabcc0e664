// SPDX-License-Identifier: Apache-2.0
//
// HasReason("LEASE_UNKNOWN"): a status, or a value or status, that is an error with that reason.
// For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_REASON_MATCHER_H_
#define LOCKSTEP_COORDINATOR_TESTING_REASON_MATCHER_H_

#include "absl/status/status.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {

MATCHER_P(HasReason, reason, "") {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << status;
  return !status.ok() && rpc::ReasonOf(status) == reason;
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_REASON_MATCHER_H_
