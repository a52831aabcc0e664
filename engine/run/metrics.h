// SPDX-License-Identifier: Apache-2.0
//
// A run's numbers for people, a line of JSON a step in metrics.jsonl and the same as TensorBoard
// events (run/tensorboard.h). Nothing reads them back but plots.
#ifndef LOCKSTEP_ENGINE_RUN_METRICS_H_
#define LOCKSTEP_ENGINE_RUN_METRICS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/backend.h"
#include "engine/run/run_folder.h"
#include "engine/run/tensorboard.h"
#include "engine/state/train_state.h"
#include "engine/train_step.h"

namespace lockstep::engine {

// Move-only; appends.
class MetricsWriter {
 public:
  static absl::StatusOr<MetricsWriter> Open(Backend& backend, const RunFolder& run);
  ~MetricsWriter();
  MetricsWriter(MetricsWriter&& other) noexcept;
  MetricsWriter& operator=(MetricsWriter&& other) noexcept;

  // One step. A repeated one, after a kill, is written again: the last line of a step holds.
  absl::Status Write(const StepResult& result, const TrainState& state, bool repeated);

 private:
  explicit MetricsWriter(Backend& backend) : backend_(&backend) {}

  Backend* backend_;
  std::string path_;
  int fd_ = -1;
  std::unique_ptr<TensorBoardWriter> events_;
  std::vector<double> weight_norms_;  // by tensor, when they were last measured
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_METRICS_H_
