// SPDX-License-Identifier: Apache-2.0
//
// What training and replay of a run both begin with: its data, found where the run folder says and
// held against the manifest, and a state to start from.
#ifndef LOCKSTEP_ENGINE_RUN_RUN_INPUTS_H_
#define LOCKSTEP_ENGINE_RUN_RUN_INPUTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "audit/step_record.h"
#include "engine/backend/backend.h"
#include "engine/data/open_corpus.h"
#include "engine/data/step_reader.h"
#include "engine/run/run_folder.h"
#include "engine/state/checkpoint.h"
#include "engine/state/train_state.h"

namespace lockstep::engine {

// The run's data, before its first step, from `corpus` or, without it, from where the folder's
// places.json says; the manifest says which corpus it is, whatever corpus->manifest does. Errors of
// OpenCorpus: a corpus with another digest than the manifest's among them.
absl::StatusOr<StepReader> OpenRunData(const RunFolder& run,
                                       const std::optional<CorpusLocation>& corpus = std::nullopt);

// A run's state before `step`, from its checkpoint there, for a segment to go on from. The rest of
// the checkpoint is looked at when the segment starts. NotFound lists the checkpoints there are.
absl::StatusOr<audit::ParentSegment> ParentAt(const RunFolder& parent, uint64_t step);

// Where a run or a replay can start.
struct StartPoint {
  uint64_t step = 0;
  std::string checkpoint;  // folder; empty: the initial state
  bool operator==(const StartPoint&) const = default;
};

// The latest at or before `step`: one of the run's checkpoints, its parent's state, or the initial
// one. NotFound if a segment's parent is needed and places.json does not name it.
absl::StatusOr<StartPoint> FindStart(const RunFolder& run, uint64_t step);

// Fills the state from there, and puts the data where the state is. FailedPrecondition if state and
// data do not go together.
absl::Status LoadStart(Backend& backend, const RunFolder& run, const StartPoint& start,
                       TrainState& state, StepReader& data, BytesHook read);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_RUN_INPUTS_H_
