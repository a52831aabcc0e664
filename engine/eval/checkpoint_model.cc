// SPDX-License-Identifier: Apache-2.0
//
// Parameters from the checkpoint; a model for each length of windows, one at a time.
#include "engine/eval/checkpoint_model.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "base/status.h"
#include "engine/state/checkpoint_parameters.h"

namespace lockstep::engine {

absl::StatusOr<std::unique_ptr<CheckpointModel>> CheckpointModel::Load(
    Backend& backend, const audit::RunManifest& run, const std::string& checkpoint,
    BytesHook read) {
  std::unique_ptr<CheckpointModel> model = absl::WrapUnique(new CheckpointModel(backend, run));
  LOCKSTEP_ASSIGN_OR_RETURN(
      model->parameters_,
      Buffer::Create(backend, model->layout_.flat_elements() * sizeof(BFloat16)), "parameters");
  const auto take = [&](const Piece& piece, const BFloat16* data) {
    backend.Copy(model->parameters_.as<BFloat16>() + piece.offset, data,
                 piece.count * sizeof(BFloat16));
    return absl::OkStatus();
  };
  LOCKSTEP_ASSIGN_OR_RETURN(model->checkpoint_,
                            ReadParameters(backend, run, model->layout_, checkpoint, take, read));
  return model;
}

absl::Status CheckpointModel::Losses(int64_t length, std::span<const int32_t> inputs,
                                     std::span<const int32_t> targets, std::span<float> losses) {
  LOCKSTEP_RETURN_IF_ERROR(MakeReady(length, static_cast<int64_t>(inputs.size()) / length));
  model_->Losses(parameters(), inputs, targets, losses);
  return absl::OkStatus();
}

absl::Status CheckpointModel::MakeReady(int64_t length, int64_t windows) {
  if (model_ != nullptr && length == length_ && windows <= windows_) return absl::OkStatus();
  model_.reset();  // before the next one takes its memory
  audit::RunManifest run = run_;
  run.model.seq_len = length;
  run.model.window = std::min(run.model.window, length);
  length_ = length;
  // As many as the usual batch has tokens for, so that few batches ask for a larger model.
  windows_ = std::max(windows, batch_windows() * seq_len() / length);
  LOCKSTEP_ASSIGN_OR_RETURN(model_,
                            Model::Create(backend_, run, {.windows = windows_, .recompute = true}));
  model_->Prepare(parameters());
  return absl::OkStatus();
}

}  // namespace lockstep::engine
