// SPDX-License-Identifier: Apache-2.0
//
// Which updates a run leaves out: those whose loss or gradient norm is not finite or whose norm is
// a spike, and a few after each (the paper, section 3.4.2). A pure function of the state, so that a
// replay decides the same.
#ifndef LOCKSTEP_ENGINE_OPTIMIZER_SPIKE_PROTOCOL_H_
#define LOCKSTEP_ENGINE_OPTIMIZER_SPIKE_PROTOCOL_H_

#include <cstdint>

#include "audit/run_manifest.h"
#include "audit/step_record.h"

namespace lockstep::engine {

struct StepDecision {
  audit::StepOutcome outcome;
  audit::SpikeState after;
  bool halt;  // events came too often: the run stops after this step
};

// While skips are left, the step is skipped whatever its numbers are, and is no event. An event
// begins a new count if the present one began recipe.spike_halt_steps or more steps ago.
StepDecision DecideStep(const audit::Recipe& recipe, const audit::SpikeState& before, uint64_t step,
                        float loss, float gradient_norm);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_OPTIMIZER_SPIKE_PROTOCOL_H_
