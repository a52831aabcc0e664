// SPDX-License-Identifier: Apache-2.0
//
// The Euclidean norm of each parameter tensor, for people.
#ifndef LOCKSTEP_ENGINE_RUN_WEIGHT_NORMS_H_
#define LOCKSTEP_ENGINE_RUN_WEIGHT_NORMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/backend/backend.h"
#include "engine/state/train_state.h"

namespace lockstep::engine {

// By tensor, of the parameters as the model reads them.
absl::StatusOr<std::vector<double>> WeightNorms(Backend& backend, const TrainState& state);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_WEIGHT_NORMS_H_
