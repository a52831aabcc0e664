// SPDX-License-Identifier: Apache-2.0
//
// A model whose losses are given by a function, and which keeps what it was asked. For tests only.
#ifndef LOCKSTEP_ENGINE_EVAL_TESTING_RIGGED_SOURCE_H_
#define LOCKSTEP_ENGINE_EVAL_TESTING_RIGGED_SOURCE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/eval/loss_source.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace lockstep::engine::testing {

class RiggedSource : public LossSource {
 public:
  // The loss of `target` after the inputs of its window up to its own.
  using LossOf = std::function<float(std::span<const int32_t> context, int32_t target)>;

  struct Batch {
    int64_t length;
    std::vector<int32_t> inputs;
    std::vector<int32_t> targets;
    int64_t windows() const { return static_cast<int64_t>(inputs.size()) / length; }
  };

  RiggedSource(int64_t seq_len, int64_t batch_windows, LossOf loss_of)
      : seq_len_(seq_len), batch_windows_(batch_windows), loss_of_(std::move(loss_of)) {}

  int64_t seq_len() const override { return seq_len_; }
  int64_t batch_windows() const override { return batch_windows_; }

  absl::Status Losses(int64_t length, std::span<const int32_t> inputs,
                      std::span<const int32_t> targets, std::span<float> losses) override {
    batches.push_back({length, {inputs.begin(), inputs.end()}, {targets.begin(), targets.end()}});
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t window = i / length * length;
      losses[i] = targets[i] == kernels::kIgnoredTarget
                      ? 0.0f
                      : loss_of_(inputs.subspan(window, i - window + 1), targets[i]);
    }
    return absl::OkStatus();
  }

  std::vector<Batch> batches;

 private:
  const int64_t seq_len_;
  const int64_t batch_windows_;
  const LossOf loss_of_;
};

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_EVAL_TESTING_RIGGED_SOURCE_H_
