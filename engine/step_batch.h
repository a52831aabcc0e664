// SPDX-License-Identifier: Apache-2.0
//
// What a step consumes, as TrainStep takes it.
#ifndef LOCKSTEP_ENGINE_STEP_BATCH_H_
#define LOCKSTEP_ENGINE_STEP_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "engine/data/cursor.h"
#include "engine/data/schedule.h"
#include "engine/data/step_reader.h"

namespace lockstep::engine {

// The manifest's batch phases as the stream's schedule.
absl::StatusOr<BatchSchedule> ScheduleOf(const audit::RunManifest& manifest);

struct StepBatch {
  std::vector<int32_t> tokens;  // [windows, T + 1], the step's windows in order
  StreamCursor cursor;          // of the stream after them
};

// The reader's next step. Its errors; the reader has then not moved.
absl::StatusOr<StepBatch> ReadStepBatch(StepReader& reader);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STEP_BATCH_H_
