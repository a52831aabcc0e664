// SPDX-License-Identifier: Apache-2.0
//
// The model of a checkpoint, forward only, with the kernels and the precision of its training:
// parameters and the activations of one batch are all it holds.
#ifndef LOCKSTEP_ENGINE_EVAL_CHECKPOINT_MODEL_H_
#define LOCKSTEP_ENGINE_EVAL_CHECKPOINT_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/checkpoint_manifest.h"
#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/eval/loss_source.h"
#include "engine/model/model.h"
#include "engine/model/parameters.h"
#include "engine/state/checkpoint.h"

namespace lockstep::engine {

// Not for several threads at once.
class CheckpointModel : public LossSource {
 public:
  // Reads and proves the parameters (ReadParameters, whose errors it passes on).
  static absl::StatusOr<std::unique_ptr<CheckpointModel>> Load(Backend& backend,
                                                               const audit::RunManifest& run,
                                                               const std::string& checkpoint,
                                                               BytesHook read);

  const audit::CheckpointManifest& checkpoint() const { return checkpoint_; }

  int64_t seq_len() const override { return run_.model.seq_len; }
  int64_t batch_windows() const override { return run_.topology.micro_batch; }

  // Any number of windows; another length than that of the call before takes time to make ready.
  // ResourceExhausted if the activations of so many do not fit.
  absl::Status Losses(int64_t length, std::span<const int32_t> inputs,
                      std::span<const int32_t> targets, std::span<float> losses) override;

 private:
  CheckpointModel(Backend& backend, const audit::RunManifest& run)
      : backend_(backend), run_(run), layout_(run.model) {}
  absl::Status MakeReady(int64_t length, int64_t windows);
  ParametersView parameters() const { return {parameters_.as<BFloat16>(), &layout_}; }

  Backend& backend_;
  const audit::RunManifest run_;
  const ParameterLayout layout_;
  audit::CheckpointManifest checkpoint_;
  Buffer parameters_;             // [flat_elements] bf16
  std::unique_ptr<Model> model_;  // for windows_ of length_ tokens, with prepared weights
  int64_t length_ = 0;
  int64_t windows_ = 0;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_EVAL_CHECKPOINT_MODEL_H_
