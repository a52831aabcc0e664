// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a checkpoint alone, for whoever uses a model and does not train it: no moments,
// no data stream. They are as well proved as in engine/state/checkpoint.h. Format:
// docs/checkpoint.md.
#ifndef LOCKSTEP_ENGINE_STATE_CHECKPOINT_PARAMETERS_H_
#define LOCKSTEP_ENGINE_STATE_CHECKPOINT_PARAMETERS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/checkpoint_manifest.h"
#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/model/parameters.h"
#include "engine/run/run_folder.h"
#include "engine/state/checkpoint.h"

namespace lockstep::engine {

// Takes the parameters of a piece as the model reads them: bf16, in the backend's memory, until it
// returns.
using PieceSink = absl::FunctionRef<absl::Status(const Piece& piece, const BFloat16* data)>;

// Gives `sink` all pieces in order; those stored as f32 are rounded as ConvertBf16Args says. What
// it was given counts only if the result is OK: DataLoss if the files are not those of the run's
// model, or the bytes do not have the root of parameters that the record commits to. A sink's error
// is passed on. `read` hears of the bytes read.
absl::StatusOr<audit::CheckpointManifest> ReadParameters(Backend& backend,
                                                         const audit::RunManifest& run,
                                                         const ParameterLayout& layout,
                                                         const std::string& folder, PieceSink sink,
                                                         BytesHook read);

// The run whose folder `checkpoint` lies in, as RUN/checkpoints/STEP. NotFound if there is none.
absl::StatusOr<RunFolder> FindRunOfCheckpoint(const std::string& checkpoint);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_CHECKPOINT_PARAMETERS_H_
