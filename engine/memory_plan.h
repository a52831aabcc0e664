// SPDX-License-Identifier: Apache-2.0
//
// How much memory a run takes, by what it is for, and what is given up when it is too much: layers
// are computed again on the way back, moments and partial gradients go to files. None of it changes
// a bit.
#ifndef LOCKSTEP_ENGINE_MEMORY_PLAN_H_
#define LOCKSTEP_ENGINE_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "audit/run_manifest.h"

namespace lockstep::engine {

struct MemoryChoices {
  bool recompute = false;       // layers' activations
  bool spill_partials = false;  // sums over shards and replicas
  bool spill_state = false;     // moments, and parameters stored as f32
  bool operator==(const MemoryChoices&) const = default;
};

// Bytes.
struct MemoryPlan {
  MemoryChoices choices;
  int64_t parameters = 0;  // as the model reads them
  int64_t state = 0;       // moments, and parameters stored as f32
  int64_t gradients = 0;   // of a rank, and of one tensor where micro-batches add up
  int64_t partials = 0;    // of shards and replicas
  int64_t model = 0;       // activations, prepared weights
  int64_t working = 0;     // logits, rotated operands and packed blocks; an upper estimate
  int64_t disk = 0;        // of the spill folder

  int64_t memory() const { return parameters + state + gradients + partials + model + working; }
  // A table for people.
  std::string ToTable() const;
};

MemoryPlan PlanMemory(const audit::RunManifest& manifest, const MemoryChoices& choices);

// The first that fits of: everything in memory; partials spilled; layers recomputed; state spilled,
// each with those before it. ResourceExhausted, with the last one's table, if none does.
absl::StatusOr<MemoryPlan> FitMemory(const audit::RunManifest& manifest, int64_t bytes_available);

// What the system says is free for a process to take; nullopt where it does not say.
std::optional<int64_t> AvailableMemory();

// Of that, what a run may take if nobody says: a tenth is left to the rest of the system.
std::optional<int64_t> MemoryForRun();

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_MEMORY_PLAN_H_
