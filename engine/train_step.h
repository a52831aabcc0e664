// SPDX-License-Identifier: Apache-2.0
//
// One optimizer step: state in, state and step record out. Trainer and auditor run this same code,
// rank after logical rank (the paper's Algorithm 1), so the bits depend on the run's manifest and
// on nothing about the machine.
#ifndef LOCKSTEP_ENGINE_TRAIN_STEP_H_
#define LOCKSTEP_ENGINE_TRAIN_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "audit/step_leaves.h"
#include "audit/step_record.h"
#include "audit/transcript.h"
#include "base/sha256.h"
#include "engine/backend/backend.h"
#include "engine/model/model.h"
#include "engine/model/parameters.h"
#include "engine/reduce/gradient_reducer.h"
#include "engine/state/train_state.h"
#include "engine/step_batch.h"

namespace lockstep::engine {

// Where the time of a step went, in seconds.
struct StepTimes {
  double model = 0;   // forward and backward passes
  double reduce = 0;  // adding up and averaging gradients
  double update = 0;  // norm, clip, AdamW, quantising the new weights
  double hash = 0;    // all digests of state, gradient, windows and transcript
  double total() const { return model + reduce + update + hash; }
};

struct StepResult {
  audit::StepRecord record;
  Digest chain;                         // after the step
  bool halt = false;                    // by the recipe's rule on spikes
  std::vector<Digest> gradient_leaves;  // as StateLeaves
  std::vector<audit::TranscriptLeaf> transcript;
  std::vector<double> gradient_squares;  // by tensor: sum of squares before the clip, for people
  StepTimes times;
};

// The leaves under the roots of the step's record; `state` is that after the step.
audit::StepLeaves LeavesOf(const StepResult& result, const TrainState& state);

// Choices that change memory, speed and what is kept, and no bit of the state.
struct StepOptions {
  bool recompute = false;
  std::string spill_folder;  // for partial gradients; empty: they stay in memory
  bool hash = true;          // without it roots and chain are zeros: for measurements
};

class TrainStep {
 public:
  static absl::StatusOr<std::unique_ptr<TrainStep>> Create(Backend& backend,
                                                           const audit::RunManifest& manifest,
                                                           const StepOptions& options);

  const ParameterLayout& layout() const { return model_->layout(); }
  Model& model() { return *model_; }

  // The step state.step. batch: as many windows as the manifest's phase takes, a multiple of ranks
  // times micro-batch. `interrupted` is asked before each micro-batch; Cancelled then, and the
  // state is as it was. After any other error (a spill file that fails, memory that is not there)
  // the state is lost: load it again.
  absl::StatusOr<StepResult> Run(TrainState& state, const StepBatch& batch,
                                 absl::FunctionRef<bool()> interrupted);

  // The prepared weights are of other parameters: say so after the state was filled from elsewhere.
  void ParametersChanged() { prepared_ = false; }

 private:
  TrainStep(Backend& backend, const audit::RunManifest& manifest, const StepOptions& options)
      : backend_(backend), manifest_(manifest), options_(options) {}

  absl::StatusOr<FlatArray*> Gradient(const TrainState& state, const StepBatch& batch,
                                      absl::FunctionRef<bool()> interrupted, StepResult* result);
  absl::Status Rank(const TrainState& state, const StepBatch& batch, int64_t rank, float* gradient,
                    absl::FunctionRef<bool()> interrupted, StepResult* result);
  absl::Status Measure(FlatArray& gradient, StepResult* result);
  absl::Status Update(TrainState& state, FlatArray& gradient, StepResult* result);
  absl::Status UpdatePiece(TrainState& state, const Piece& piece, const float* gradient,
                           const kernels::AdamWScalars& scalars, StepResult* result);

  Backend& backend_;
  const audit::RunManifest manifest_;
  const StepOptions options_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<GradientReducer> reducer_;
  Buffer scratch_;  // one tensor's gradient, for all micro-batches but a rank's first
  Buffer totals_;   // [chunks] sums of squares, and their norm
  bool prepared_ = false;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TRAIN_STEP_H_
