// SPDX-License-Identifier: Apache-2.0
//
// The step records of a run folder, for those who only look.
#ifndef LOCKSTEP_ENGINE_RUN_READ_RECORDS_H_
#define LOCKSTEP_ENGINE_RUN_READ_RECORDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "audit/step_record.h"
#include "engine/run/run_folder.h"

namespace lockstep::engine {

// None if the run has not begun. The run may be at work: a record of which only a part is written
// yet is left out. DataLoss as of audit::ParseStepLog.
absl::StatusOr<std::vector<audit::StepRecord>> ReadRecords(const RunFolder& run);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_READ_RECORDS_H_
