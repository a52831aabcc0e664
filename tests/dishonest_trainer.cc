// SPDX-License-Identifier: Apache-2.0
//
// A trainer that cheats in one step, for the tests of the network: takes the step that a run stands
// before, with one thing changed, and writes record, leaves and state as an honest trainer does.
// `lockstep train` goes on from there and notices nothing.
//
//   lockstep_dishonest_trainer RUN weight|window|learning-rate
//
// weight: of a step whose update is made. Where a spike skips it, an honest trainer takes over the
// roots of the step before, and the state here would not be the one that the record commits to.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "audit/step_log.h"
#include "base/status.h"
#include "engine/backend/cpu_backend.h"
#include "engine/run/run_folder.h"
#include "engine/run/run_inputs.h"
#include "engine/state/checkpoint.h"
#include "engine/step_batch.h"
#include "engine/train_step.h"

namespace lockstep::engine {
namespace {

absl::Status FlipWeight(TrainStep& step, TrainState& state) {
  for (const Piece& piece : step.layout().Pieces(false)) {
    if (piece.tensor != step.layout().layer(0).gate_up) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(void* const weights, state.Load(StatePart::kParameters, piece));
    static_cast<uint16_t*>(weights)[17] ^= 0x0100;
    LOCKSTEP_RETURN_IF_ERROR(state.Store(StatePart::kParameters, piece));
    step.ParametersChanged();
    return absl::OkStatus();
  }
  return absl::InternalError("the model has no such weight");
}

absl::Status Cheat(const std::string& folder, const std::string& what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RunFolder run, RunFolder::Open(folder));
  LOCKSTEP_ASSIGN_OR_RETURN(audit::StepLog log, audit::StepLog::Open(run.StepLogPath()));
  const uint64_t at = log.records().empty() ? 0 : log.records().back().step + 1;
  LOCKSTEP_ASSIGN_OR_RETURN(const StartPoint start, FindStart(run, at));
  if (start.step != at || start.checkpoint.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": expected a state before step ", at, ": train --stop-at ", at));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, CreateCpuBackend(1));
  audit::RunManifest manifest = run.manifest();
  if (what == "learning-rate") manifest.recipe.peak_lr *= 1.01;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<TrainStep> step,
                            TrainStep::Create(*backend, manifest, {}));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<TrainState> state,
                            TrainState::Create(*backend, run.manifest(), step->layout(), ""));
  LOCKSTEP_ASSIGN_OR_RETURN(StepReader data, OpenRunData(run));
  LOCKSTEP_RETURN_IF_ERROR(LoadStart(*backend, run, start, *state, data, [](int64_t) {}));
  LOCKSTEP_ASSIGN_OR_RETURN(StepBatch batch, ReadStepBatch(data));
  if (what == "weight") {
    LOCKSTEP_RETURN_IF_ERROR(FlipWeight(*step, *state));
  } else if (what == "window") {
    batch.tokens[3] = (batch.tokens[3] + 1) % 512;
  } else if (what != "learning-rate") {
    return absl::InvalidArgumentError(
        absl::StrCat("expected weight, window or learning-rate; found ", what));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const StepResult result,
                            step->Run(*state, batch, [] { return false; }));
  LOCKSTEP_RETURN_IF_ERROR(log.Append(result.record));
  LOCKSTEP_RETURN_IF_ERROR(run.WriteLeaves(LeavesOf(result, *state)));
  LOCKSTEP_RETURN_IF_ERROR(log.Sync());
  return SaveCheckpoint(*backend, run.manifest(), *state, &result.record,
                        run.CheckpointPath(state->step), [](int64_t) {});
}

}  // namespace
}  // namespace lockstep::engine

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: lockstep_dishonest_trainer RUN weight|window|learning-rate\n");
    return 2;
  }
  const absl::Status status = lockstep::engine::Cheat(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "lockstep_dishonest_trainer: %s\n", std::string(status.message()).c_str());
  return 1;
}
