// SPDX-License-Identifier: Apache-2.0
//
// What evaluations ask of a model: the cross-entropy of given tokens. The model of a checkpoint
// answers (checkpoint_model.h), or a test's rigged one.
#ifndef LOCKSTEP_ENGINE_EVAL_LOSS_SOURCE_H_
#define LOCKSTEP_ENGINE_EVAL_LOSS_SOURCE_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"

namespace lockstep::engine {

class LossSource {
 public:
  virtual ~LossSource() = default;

  virtual int64_t seq_len() const = 0;  // T, of the windows that the model was trained on
  // Windows of T tokens that are computed at once: the run's micro-batch. A model in int8 quantises
  // activations over all of them, so a loss depends a little on what else is in its batch: the same
  // batches give the same bits, other batches other ones.
  virtual int64_t batch_windows() const = 0;

  // One batch. inputs, targets, losses: [windows, length], 1 <= length <= T. Targets may be
  // kernels::kIgnoredTarget, whose losses are +0. All tokens are below the model's vocabulary.
  virtual absl::Status Losses(int64_t length, std::span<const int32_t> inputs,
                              std::span<const int32_t> targets, std::span<float> losses) = 0;
};

// Either may be empty.
struct EvalHooks {
  std::function<bool()> interrupted;         // asked before each batch; Cancelled then
  std::function<void(int64_t amount)> done;  // of what the evaluation says it counts

  absl::Status CheckInterrupted() const {
    return interrupted && interrupted() ? absl::CancelledError("interrupted") : absl::OkStatus();
  }
  void Done(int64_t amount) const {
    if (done) done(amount);
  }
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_EVAL_LOSS_SOURCE_H_
