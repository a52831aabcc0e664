// SPDX-License-Identifier: Apache-2.0
//
// Whether this machine can replay one step of a run, asked before the work: instruction set,
// memory, disk, data, a state to start from, and about how long it takes.
#ifndef LOCKSTEP_ENGINE_RUN_DOCTOR_H_
#define LOCKSTEP_ENGINE_RUN_DOCTOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "audit/run_manifest.h"
#include "engine/memory_plan.h"
#include "engine/run/run_folder.h"
#include "engine/run/step_probe.h"

namespace lockstep::engine {

struct DoctorOptions {
  int threads = 1;
  std::optional<int64_t> memory_bytes;  // that the replay may take; without it, nine tenths of what
                                        // the system says is free
  std::string spill_folder = ".";
  bool probe = true;  // take the time of a step
};

enum class Health {
  kGood,
  kBad,         // keeps a replay from working
  kNotChecked,  // does not apply, or waits for something that is bad
};
absl::string_view HealthName(Health health);  // "good", "bad", "not checked"

struct Finding {
  std::string what;  // "processor", "memory", "disk", "data", "start", "time"
  Health health = Health::kNotChecked;
  std::string detail;
};

struct DoctorReport {
  std::vector<Finding> findings;
  std::optional<MemoryPlan> plan;        // if the run fits
  std::optional<int64_t> memory_bytes;   // that there are
  std::optional<int64_t> disk_bytes;     // free in the spill folder
  std::optional<StepEstimate> estimate;  // of a step
  int64_t windows = 0;                   // of that step

  // Nothing is bad.
  bool can_replay() const;
};

// folder: the run's, for data and start; null: there is none, only a manifest. The step whose time
// is taken is the last one recorded, or the first.
DoctorReport Diagnose(const audit::RunManifest& run, const RunFolder* folder,
                      const DoctorOptions& options);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_DOCTOR_H_
