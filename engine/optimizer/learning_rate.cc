// SPDX-License-Identifier: Apache-2.0
//
// Linear, then half a cosine.
#include "engine/optimizer/learning_rate.h"

#include <algorithm>

#include "kernels/math/host64.h"

namespace lockstep::engine {

double LearningRateAt(const audit::Recipe& recipe, int64_t tokens) {
  const auto t = static_cast<double>(tokens);
  const auto warmup = static_cast<double>(recipe.warmup_tokens);
  const auto total = static_cast<double>(recipe.total_tokens);
  if (t <= warmup) return recipe.peak_lr * (t / warmup);
  const double x = t < total ? (t - warmup) / (total - warmup) : 1.0;
  const double floor = recipe.peak_lr * recipe.final_lr_fraction;
  return floor + (recipe.peak_lr - floor) * (0.5 * (1.0 + kernels::Cos64(kernels::kPi64 * x)));
}

}  // namespace lockstep::engine
