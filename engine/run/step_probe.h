// SPDX-License-Identifier: Apache-2.0
//
// How long a step of a run would take here, from real steps of a small part of it: one layer of the
// run's shapes, short sequences, a cut vocabulary. An estimate, for people; nothing depends on it.
#ifndef LOCKSTEP_ENGINE_RUN_STEP_PROBE_H_
#define LOCKSTEP_ENGINE_RUN_STEP_PROBE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/memory_plan.h"
#include "engine/train_step.h"

namespace lockstep::engine {

// The part of the run that is measured: its first layer, micro-batches of at most 256 tokens in
// windows of at most 256, at most `vocab` words, two ranks if the run has several, and one
// micro-batch of each.
audit::RunManifest ProbeManifest(const audit::RunManifest& run, int64_t vocab);

// The larger of the two vocabularies that are measured; the other is a quarter of it. The
// difference tells the head's share.
int64_t ProbeVocab(const audit::RunManifest& run);

struct StepEstimate {
  StepTimes times;            // of one step of the run
  int64_t micro_batches = 0;  // of all ranks, in a step
  double probe_seconds = 0;   // that the measurement took
};

// Steps of `windows` windows. The model's time goes with the operations of its layers and of its
// head, the reduction's with ranks and parameters, the update's with parameters, hashing with the
// bytes hashed. Where `choices` spill, so does the probe, into spill_folder; the larger files of
// the run may be slower than that, since they do not stay in the system's cache.
absl::StatusOr<StepEstimate> EstimateStep(Backend& backend, const audit::RunManifest& run,
                                          int64_t windows, const MemoryChoices& choices,
                                          const std::string& spill_folder);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_STEP_PROBE_H_
