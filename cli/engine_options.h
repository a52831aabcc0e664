// SPDX-License-Identifier: Apache-2.0
//
// What the commands that compute steps have in common: threads, memory, and how the plan of it is
// shown before work.
#ifndef LOCKSTEP_CLI_ENGINE_OPTIONS_H_
#define LOCKSTEP_CLI_ENGINE_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/memory_plan.h"

namespace lockstep::cli {

struct EngineOptions {
  int threads = 0;         // 0: as many as there are CPUs
  double memory_gib = 0;   // 0: what the system says is free
  std::string spill = "";  // folder; empty: the run's
  bool recompute = false;
  bool spill_state = false;
  bool spill_partials = false;
};

void AddEngineOptions(CLI::App& command, EngineOptions& options);

absl::StatusOr<std::unique_ptr<engine::Backend>> CreateBackend(const EngineOptions& options);

// What was asked for, or what fits. Printed to stderr unless `quiet`.
absl::StatusOr<engine::MemoryPlan> ChoosePlan(const EngineOptions& options,
                                              const audit::RunManifest& manifest, bool quiet);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_ENGINE_OPTIONS_H_
