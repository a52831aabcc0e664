// SPDX-License-Identifier: Apache-2.0
//
// What a replay found. A mismatch is a result and not an error: it says where published and
// replayed step first part, in the order in which a step computes. What kept a replay from its end
// is no verdict on the run: inconclusive, with the reason.
#ifndef LOCKSTEP_AUDIT_VERDICT_H_
#define LOCKSTEP_AUDIT_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "audit/state_tree.h"
#include "audit/step_leaves.h"
#include "audit/step_record.h"

namespace lockstep::audit {

enum class Verdict { kMatch, kMismatch, kInconclusive };
absl::string_view VerdictName(Verdict verdict);

// The first place in which two records of a step differ.
struct Difference {
  uint64_t step = 0;
  std::string field;     // of StepRecord
  std::string expected;  // as published
  std::string found;     // as replayed
  // Where the leaves of both tell it: "tensor layers.3.mlp.down, chunk 2 of 5", or "rank 1,
  // micro-batch 0, residual stream before layer 4".
  std::string place;
};

// Fields are looked at in the order in which a step computes them: chain, step and tokens before,
// windows, cursor, transcript, losses, gradient and its norm, outcome, learning rate, state.
// nullopt if the records are equal.
std::optional<Difference> CompareRecords(const StepRecord& published, const StepRecord& replayed);

// Completes a difference from the leaves of both sides, each checked against its record before
// (CheckLeaves). `tensors` names the chunks.
void LocateDifference(const TensorTable& tensors, const StepLeaves& published,
                      const StepLeaves& replayed, Difference* difference);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_VERDICT_H_
