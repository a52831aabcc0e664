// SPDX-License-Identifier: Apache-2.0
//
// Whole records only.
#include "engine/run/read_records.h"

#include <string>

#include "audit/step_log.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<std::vector<audit::StepRecord>> ReadRecords(const RunFolder& run) {
  const absl::StatusOr<std::string> bytes = ReadFile(run.StepLogPath(), audit::kStepLogBytesMax);
  if (absl::IsNotFound(bytes.status())) return std::vector<audit::StepRecord>();
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  const size_t whole = bytes->size() / audit::kStepRecordBytes * audit::kStepRecordBytes;
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<audit::StepRecord> records,
                            audit::ParseStepLog(AsBytes(*bytes).first(whole)), run.StepLogPath());
  return records;
}

}  // namespace lockstep::engine
