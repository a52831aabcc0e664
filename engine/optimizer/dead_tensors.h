// SPDX-License-Identifier: Apache-2.0
//
// Watches for parameters that get no gradient: a layer that is cut off by a mistake trains on in
// silence otherwise. Not part of the state: it can stop a run and never changes one.
#ifndef LOCKSTEP_ENGINE_OPTIMIZER_DEAD_TENSORS_H_
#define LOCKSTEP_ENGINE_OPTIMIZER_DEAD_TENSORS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "audit/state_tree.h"

namespace lockstep::engine {

class DeadTensorWatch {
 public:
  // steps_max: that many steps in a row without a gradient are an error; 0: never.
  DeadTensorWatch(const audit::TensorTable& table, int64_t steps_max)
      : table_(table), steps_max_(steps_max), zeros_(table.tensors().size()) {}

  // squares: the sum of squares of each tensor's gradient in a step; 0 if no element reaches 2^-63.
  // FailedPrecondition names the tensors that have been dead for too long.
  absl::Status Observe(std::span<const double> squares);

 private:
  const audit::TensorTable& table_;
  int64_t steps_max_;
  std::vector<int64_t> zeros_;  // steps in a row, by tensor
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_OPTIMIZER_DEAD_TENSORS_H_
