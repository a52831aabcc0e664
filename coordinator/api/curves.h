// SPDX-License-Identifier: Apache-2.0
//
// A run's curves in few points: steps in buckets of equal length, of each the least, the largest
// and the mean, so that a spike of one step among thousands is still seen.

#ifndef LOCKSTEP_COORDINATOR_API_CURVES_H_
#define LOCKSTEP_COORDINATOR_API_CURVES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/core/coordinator.h"

namespace lockstep::coordinator {

struct CurveQuery {
  uint64_t begin = 0;  // cut to the steps that are there, as the next
  uint64_t end = UINT64_MAX;
  uint64_t buckets = 1000;  // at most, from 1
};

// JSON: docs/api.md. RUN_UNKNOWN.
absl::StatusOr<std::string> CurvesJson(const Coordinator& coordinator, const Digest& run,
                                       const CurveQuery& query);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_CURVES_H_
