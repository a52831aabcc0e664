// SPDX-License-Identifier: Apache-2.0
//
// The learning rate, anchored to consumed tokens and not to steps, so that a change of batch size
// does not move it (the paper, section 3.2).
#ifndef LOCKSTEP_ENGINE_OPTIMIZER_LEARNING_RATE_H_
#define LOCKSTEP_ENGINE_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "audit/run_manifest.h"

namespace lockstep::engine {

// The rate of the step after which `tokens` are consumed (the step's own among them), in binary64
// by kernels/math/host64.h, in this order:
//   tokens <= warmup:  peak * (tokens / warmup)
//   else:              x = min(1, (tokens - warmup) / (total - warmup))
//                      floor = peak * final_fraction
//                      floor + (peak - floor) * (0.5 * (1 + cos(pi * x)))
double LearningRateAt(const audit::Recipe& recipe, int64_t tokens);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_OPTIMIZER_LEARNING_RATE_H_
