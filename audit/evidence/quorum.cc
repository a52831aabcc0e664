// SPDX-License-Identifier: Apache-2.0
//
// The rule, in one place.
#include "audit/evidence/quorum.h"

namespace lockstep::audit {

absl::string_view StepStateName(StepState state) {
  switch (state) {
    case StepState::kUnaudited:
      return "unaudited";
    case StepState::kClaimed:
      return "claimed";
    case StepState::kProvisional:
      return "provisional";
    case StepState::kConfirmed:
      return "confirmed";
    case StepState::kDisputed:
      return "disputed";
  }
  return "unknown";
}

StepState StateOf(const StepTally& tally, const Quorum& quorum) {
  if (tally.mismatches > 0 || tally.second_history) return StepState::kDisputed;
  if (tally.matches == 0) return StepState::kUnaudited;
  const bool confirmed = tally.operators >= quorum.operators && tally.backends >= quorum.backends;
  return confirmed ? StepState::kConfirmed : StepState::kProvisional;
}

}  // namespace lockstep::audit
