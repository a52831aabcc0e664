// SPDX-License-Identifier: Apache-2.0
//
// Options, backend, plan.
#include "cli/engine_options.h"

#include <cstdio>
#include <limits>
#include <optional>

#include "cli/threads.h"
#include "engine/backend/cpu_backend.h"

namespace lockstep::cli {

void AddEngineOptions(CLI::App& command, EngineOptions& options) {
  command
      .add_option("--threads", options.threads, "threads; as many as there are CPUs if not given")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--memory", options.memory_gib,
                  "GiB that the run may take; what the system says is free if not given")
      ->check(CLI::PositiveNumber);
  command.add_option("--spill-folder", options.spill,
                     "where arrays go that do not fit; the run's folder if not given");
  command.add_flag("--recompute", options.recompute,
                   "compute layers again on the way back, whether or not memory is short");
  command.add_flag("--spill-state", options.spill_state, "keep moments in files, likewise");
  command.add_flag("--spill-partials", options.spill_partials,
                   "keep partial gradients in files, likewise");
}

absl::StatusOr<std::unique_ptr<engine::Backend>> CreateBackend(const EngineOptions& options) {
  return engine::CreateCpuBackend(options.threads > 0 ? options.threads : DefaultThreads());
}

absl::StatusOr<engine::MemoryPlan> ChoosePlan(const EngineOptions& options,
                                              const audit::RunManifest& manifest, bool quiet) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const engine::MemoryChoices asked = {.recompute = options.recompute,
                                       .spill_partials = options.spill_partials,
                                       .spill_state = options.spill_state};
  engine::MemoryPlan plan;
  if (asked != engine::MemoryChoices{}) {
    plan = engine::PlanMemory(manifest, asked);
  } else {
    const std::optional<int64_t> available = engine::MemoryForRun();
    const int64_t bytes = options.memory_gib > 0 ? static_cast<int64_t>(options.memory_gib * kGiB)
                          : available            ? *available
                                                 : std::numeric_limits<int64_t>::max();
    auto fitted = engine::FitMemory(manifest, bytes);
    if (!fitted.ok()) return fitted.status();
    plan = *fitted;
  }
  if (!quiet) std::fprintf(stderr, "memory plan\n%s", plan.ToTable().c_str());
  return plan;
}

}  // namespace lockstep::cli
