// SPDX-License-Identifier: Apache-2.0
//
// The leaves under the roots of a step record: what lets a disagreement about a step be told to the
// tensor and chunk, or to the micro-batch and layer. Published beside the records, or kept for a
// while; believed only as far as they have the record's roots. Format: docs/step_record.md.
#ifndef LOCKSTEP_AUDIT_STEP_LEAVES_H_
#define LOCKSTEP_AUDIT_STEP_LEAVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/step_record.h"
#include "audit/transcript.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep::audit {

struct StepLeaves {
  uint64_t step = 0;
  // One digest for each chunk of the model's tensors (audit/state_tree.h), all of one length.
  std::vector<Digest> parameters;
  std::vector<Digest> first_moment;
  std::vector<Digest> second_moment;
  std::vector<Digest> gradient;
  std::vector<TranscriptLeaf> transcript;
  bool operator==(const StepLeaves&) const = default;
};

std::string EncodeStepLeaves(const StepLeaves& leaves);

// Accepts exactly what EncodeStepLeaves writes. Untrusted input; DataLoss gives the offset.
absl::StatusOr<StepLeaves> DecodeStepLeaves(ByteSpan bytes);

// OK if the leaves have the record's five roots; DataLoss names the first that they have not.
absl::Status CheckLeaves(const StepLeaves& leaves, const StepRecord& record);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_STEP_LEAVES_H_
