// SPDX-License-Identifier: Apache-2.0
//
// Counts of steps without a gradient.
#include "engine/optimizer/dead_tensors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::engine {

absl::Status DeadTensorWatch::Observe(std::span<const double> squares) {
  if (steps_max_ == 0) return absl::OkStatus();
  std::vector<std::string> dead;
  for (size_t t = 0; t < zeros_.size(); ++t) {
    zeros_[t] = squares[t] == 0 ? zeros_[t] + 1 : 0;
    if (zeros_[t] >= steps_max_) dead.push_back(table_.tensors()[t].name);
  }
  if (dead.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "no gradient reached ", absl::StrJoin(dead, ", "), " for ", steps_max_,
      " steps (the recipe's dead_tensor_steps); the model does not train these parameters"));
}

}  // namespace lockstep::engine
