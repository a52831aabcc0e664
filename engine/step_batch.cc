// SPDX-License-Identifier: Apache-2.0
//
// Windows, one after another.
#include "engine/step_batch.h"

#include <span>
#include <utility>

#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<BatchSchedule> ScheduleOf(const audit::RunManifest& manifest) {
  std::vector<BatchPhase> phases;
  for (const audit::BatchPhaseConfig& phase : manifest.batch) {
    phases.push_back({.windows_per_step = static_cast<uint64_t>(phase.windows_per_step),
                      .until_tokens = static_cast<uint64_t>(phase.until_tokens)});
  }
  const auto seq_len = static_cast<uint64_t>(manifest.model.seq_len);
  ScheduleStart start;
  if (manifest.parent) {
    start = {.step = static_cast<uint64_t>(manifest.parent->step),
             .window = static_cast<uint64_t>(manifest.parent->tokens) / seq_len};
  }
  return BatchSchedule::Create(std::move(phases), seq_len, start);
}

absl::StatusOr<StepBatch> ReadStepBatch(StepReader& reader) {
  const uint64_t before = reader.step();
  const StreamCursor cursor = reader.cursor();
  LOCKSTEP_ASSIGN_OR_RETURN(const Step step, reader.Next());
  StepBatch batch = {.tokens = {}, .cursor = step.after};
  batch.tokens.resize(step.windows() * reader.window_tokens());
  for (uint64_t m = 0; m < step.windows(); ++m) {
    const absl::Status read = reader.ReadWindow(
        step, m,
        std::span(batch.tokens).subspan(m * reader.window_tokens(), reader.window_tokens()));
    if (read.ok()) continue;
    LOCKSTEP_RETURN_IF_ERROR(reader.Resume(before, cursor));
    return read;
  }
  return batch;
}

}  // namespace lockstep::engine
