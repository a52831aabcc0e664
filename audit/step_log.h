// SPDX-License-Identifier: Apache-2.0
//
// A run's step records, one after another in a file: the trajectory that is published and checked.
// Format: docs/step_record.md.
#ifndef LOCKSTEP_AUDIT_STEP_LOG_H_
#define LOCKSTEP_AUDIT_STEP_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/step_record.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep::audit {

// Records of steps that follow each other, each naming the chain up to it. Untrusted input.
// DataLoss names the first step that breaks the chain, or the byte where the bytes are no record; a
// partial record at the end is such a place.
absl::StatusOr<std::vector<StepRecord>> ParseStepLog(ByteSpan bytes);

inline constexpr size_t kStepLogBytesMax = size_t{4} << 30;

// The same of a file, which is read whole.
absl::StatusOr<std::vector<StepRecord>> ReadStepLog(const std::string& path);

// The file of a run that goes on. Move-only; not for several threads at once.
class StepLog {
 public:
  // Of a file that may not exist yet. A partial record at the end, as a kill leaves it, is cut off;
  // anything else that ParseStepLog refuses is its error.
  static absl::StatusOr<StepLog> Open(const std::string& path);
  ~StepLog();
  StepLog(StepLog&& other) noexcept;
  StepLog& operator=(StepLog&& other) noexcept;

  const std::vector<StepRecord>& records() const { return records_; }
  // The record of a step; null if there is none.
  const StepRecord* Find(uint64_t step) const;

  // The next step's record, as the chain goes on (checked).
  absl::Status Append(const StepRecord& record);
  // Brings what was appended to the disk.
  absl::Status Sync();

 private:
  StepLog() = default;

  std::string path_;
  int fd_ = -1;
  std::vector<StepRecord> records_;
};

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_STEP_LOG_H_
