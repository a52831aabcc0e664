// SPDX-License-Identifier: Apache-2.0
//
// A run from where it stands to its end: steps, records, checkpoints. Killed at any moment, the
// next start goes on from the last whole checkpoint and repeats the same chain; if it does not, the
// machine or the build is at fault, and the run stops.
#ifndef LOCKSTEP_ENGINE_RUN_TRAIN_RUN_H_
#define LOCKSTEP_ENGINE_RUN_TRAIN_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/backend.h"
#include "engine/memory_plan.h"
#include "engine/run/run_folder.h"
#include "engine/run/run_inputs.h"
#include "engine/train_step.h"

namespace lockstep::engine {

struct TrainOptions {
  MemoryChoices memory;
  std::string spill_folder;         // needed if memory is spilled
  std::optional<uint64_t> stop_at;  // the run's end otherwise: no step from this one on
  // Leaves of the last so many steps are kept, and checkpoints of the last so many; -1: all.
  int64_t keep_leaves = -1;
  int64_t keep_checkpoints = -1;
};

// Called on the calling thread; each may be empty.
struct TrainHooks {
  std::function<bool()> interrupted;
  // Before the first step: where the run goes on, and one past its last step.
  std::function<void(const StartPoint& start, uint64_t end)> started;
  // Before that: a checkpoint was passed over for an earlier one, since its bytes are not those
  // that its record commits to.
  std::function<void(const StartPoint& damaged, const absl::Status& why)> passed_over;
  // After each step, its record in the log. `repeated`: the log had it already. An error stops the
  // run as an interrupt does.
  std::function<absl::Status(const StepResult& result, const TrainState& state, bool repeated)>
      stepped;
  std::function<void(const std::string& folder, double seconds)> saved;
};

struct TrainSummary {
  uint64_t next_step = 0;
  uint64_t end = 0;
  Digest chain;
  bool interrupted = false;
};

// Errors leave a folder that the next start goes on from. FailedPrecondition: dead tensors, too
// many spikes (after a checkpoint), or a step that differs from its own record.
absl::StatusOr<TrainSummary> Train(Backend& backend, const RunFolder& run,
                                   const TrainOptions& options, const TrainHooks& hooks);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_TRAIN_RUN_H_
