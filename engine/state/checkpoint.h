// SPDX-License-Identifier: Apache-2.0
//
// Training states on disk: a folder with the tensors in safetensors files and checkpoint.json
// beside them (docs/checkpoint.md). It appears whole or not at all, carries the record of the step
// that made it, and is believed only after its chunks have the roots of that record.
#ifndef LOCKSTEP_ENGINE_STATE_CHECKPOINT_H_
#define LOCKSTEP_ENGINE_STATE_CHECKPOINT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/checkpoint_manifest.h"
#include "audit/run_manifest.h"
#include "audit/step_record.h"
#include "engine/backend/backend.h"
#include "engine/state/train_state.h"

namespace lockstep::engine {

// Hears of bytes that were written or read.
using BytesHook = absl::FunctionRef<void(int64_t bytes)>;

// Writes the state as FOLDER, which must not exist: under a temporary name beside it first, each
// file brought to the disk, then renamed. `last` is the record of the step that made the state,
// null before step 0. The state's leaves must be those of its tensors.
absl::Status SaveCheckpoint(Backend& backend, const audit::RunManifest& run, TrainState& state,
                            const audit::StepRecord* last, const std::string& folder,
                            BytesHook written);

// FOLDER/checkpoint.json, checked in itself, and that the folder has exactly its files in their
// sizes.
absl::StatusOr<audit::CheckpointManifest> ReadCheckpointManifest(const std::string& folder);

// Fills the state from a checkpoint of this run (or of the parent's state that it names). DataLoss
// names the first tensor and chunk whose bytes are not those that the record commits to, as far as
// that can be told: roots tell the part only. The state is unusable after an error.
absl::Status LoadCheckpoint(Backend& backend, const audit::RunManifest& run,
                            const std::string& folder, TrainState& state, BytesHook read);

struct CheckpointReport {
  audit::CheckpointManifest manifest;
  int64_t bytes = 0;
  int64_t tensors = 0;
};

// Everything about a checkpoint that needs no other evidence: files against their digests, headers
// against the run's model, chunks against the roots.
absl::StatusOr<CheckpointReport> VerifyCheckpoint(Backend& backend, const audit::RunManifest& run,
                                                  const std::string& folder, BytesHook read);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_CHECKPOINT_H_
