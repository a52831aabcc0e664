// SPDX-License-Identifier: Apache-2.0
//
// The protocol's four cases.
#include "engine/optimizer/spike_protocol.h"

#include <cmath>

namespace lockstep::engine {

using audit::StepOutcome;

StepDecision DecideStep(const audit::Recipe& recipe, const audit::SpikeState& before, uint64_t step,
                        float loss, float gradient_norm) {
  StepDecision decision = {.outcome = StepOutcome::kUpdated, .after = before, .halt = false};
  if (before.skips_left > 0) {
    decision.outcome = StepOutcome::kSkippedAfterSpike;
    --decision.after.skips_left;
    return decision;
  }
  if (!std::isfinite(loss) || !std::isfinite(gradient_norm)) {
    decision.outcome = StepOutcome::kSkippedNonFinite;
  } else if (static_cast<double>(gradient_norm) > recipe.spike_norm) {
    decision.outcome = StepOutcome::kSkippedSpike;
  } else {
    return decision;
  }
  audit::SpikeState& after = decision.after;
  after.skips_left = static_cast<uint32_t>(recipe.spike_skip_steps - 1);
  if (after.events == 0 ||
      step - after.events_since >= static_cast<uint64_t>(recipe.spike_halt_steps)) {
    after.events = 0;
    after.events_since = step;
  }
  ++after.events;
  decision.halt = recipe.spike_halt_events > 0 &&
                  after.events > static_cast<uint64_t>(recipe.spike_halt_events);
  return decision;
}

}  // namespace lockstep::engine
