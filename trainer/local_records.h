// SPDX-License-Identifier: Apache-2.0
//
// The step records of a run that may be at work, for one who sends them on: by place, from the file
// itself, and only after they are on the disk, so that nothing is told to the world that a power
// failure could take back here.
#ifndef LOCKSTEP_TRAINER_LOCAL_RECORDS_H_
#define LOCKSTEP_TRAINER_LOCAL_RECORDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/step_record.h"
#include "base/sha256.h"

namespace lockstep::trainer {

class LocalRecords {
 public:
  // first_step, first_chain: the run's first step, and the chain before it.
  LocalRecords(std::string path, uint64_t first_step, const Digest& first_chain)
      : path_(std::move(path)), first_step_(first_step), first_chain_(first_chain) {}

  uint64_t first_step() const { return first_step_; }
  // One past the last step with a whole record; first_step if the file is not there.
  absl::StatusOr<uint64_t> EndStep() const;

  // The chain before a step that is at most EndStep().
  absl::StatusOr<Digest> ChainBefore(uint64_t step) const;

  // Records of steps `begin` ... `end` - 1, which are there, brought to the disk before. DataLoss
  // if they are not these steps, or do not follow from `begin`'s chain.
  absl::StatusOr<std::vector<audit::StepRecord>> Read(uint64_t begin, uint64_t end) const;

 private:
  absl::StatusOr<std::string> ReadBytes(uint64_t begin, uint64_t end, bool sync) const;

  const std::string path_;
  const uint64_t first_step_;
  const Digest first_chain_;
};

}  // namespace lockstep::trainer

#endif  // LOCKSTEP_TRAINER_LOCAL_RECORDS_H_
