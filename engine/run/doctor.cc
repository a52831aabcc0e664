// SPDX-License-Identifier: Apache-2.0
//
// One question after another; what fails stays a finding, and the others are asked all the same.
#include "engine/run/doctor.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "engine/backend/cpu_backend.h"
#include "engine/run/read_records.h"
#include "engine/run/run_inputs.h"
#include "engine/state/checkpoint.h"
#include "kernels/isa.h"

namespace lockstep::engine {
namespace {

// The probe is small, but two of it are measured, one after the other.
constexpr int64_t kProbeBytesMax = 2'000'000'000;

std::string Gib(int64_t bytes) {
  return absl::StrFormat("%.2f GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
}

std::string Seconds(double seconds) {
  if (seconds < 1) return absl::StrFormat("%.0f ms", 1e3 * seconds);
  if (seconds < 120) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

class Doctor {
 public:
  Doctor(const audit::RunManifest& run, const RunFolder* folder, const DoctorOptions& options)
      : run_(run), folder_(folder), options_(options) {}

  DoctorReport Run() {
    Processor();
    Memory();
    Disk();
    Data();
    Start();
    Time();
    return std::move(report_);
  }

 private:
  void Find(std::string what, Health health, std::string detail) {
    report_.findings.push_back({std::move(what), health, std::move(detail)});
  }
  void Bad(std::string what, const absl::Status& status) {
    Find(std::move(what), Health::kBad, std::string(status.message()));
  }

  void Processor() {
    const absl::StatusOr<kernels::Isa> isa = kernels::ChooseIsa();
    if (!isa.ok()) return Bad("processor", isa.status());
    std::vector<std::string> all;
    for (const kernels::Isa each : kernels::AvailableIsas()) {
      all.emplace_back(kernels::IsaName(each));
    }
    Find("processor", Health::kGood,
         absl::StrFormat("%s on %d threads (this machine runs %s; all give the same bits)",
                         kernels::IsaName(*isa), options_.threads, absl::StrJoin(all, ", ")));
    processor_ = true;
  }

  void Memory() {
    report_.memory_bytes = options_.memory_bytes ? options_.memory_bytes : MemoryForRun();
    if (!report_.memory_bytes) {
      report_.plan = PlanMemory(run_, {});
      return Find("memory", Health::kNotChecked,
                  absl::StrCat(Gib(report_.plan->memory()),
                               " needed; this system does not say what is free"));
    }
    const absl::StatusOr<MemoryPlan> plan = FitMemory(run_, *report_.memory_bytes);
    if (!plan.ok()) {
      const MemoryPlan least =
          PlanMemory(run_, {.recompute = true, .spill_partials = true, .spill_state = true});
      return Find("memory", Health::kBad,
                  absl::StrCat("expected at least ", Gib(least.memory()), ", with everything ",
                               "spilled that can be; found ", Gib(*report_.memory_bytes)));
    }
    report_.plan = *plan;
    std::vector<std::string> given_up;
    if (plan->choices.spill_partials) given_up.emplace_back("partial gradients spilled");
    if (plan->choices.recompute) given_up.emplace_back("layers recomputed");
    if (plan->choices.spill_state) given_up.emplace_back("moments spilled");
    Find("memory", Health::kGood,
         absl::StrCat(Gib(plan->memory()), " of ", Gib(*report_.memory_bytes), ", ",
                      given_up.empty() ? "nothing spilled" : absl::StrJoin(given_up, ", ")));
  }

  void Disk() {
    if (!report_.plan) return Find("disk", Health::kNotChecked, "there is no plan of memory");
    struct statvfs info;
    if (statvfs(options_.spill_folder.c_str(), &info) != 0) {
      return Bad("disk", absl::ErrnoToStatus(errno, options_.spill_folder));
    }
    report_.disk_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
    const bool enough = report_.plan->disk <= *report_.disk_bytes;
    Find("disk", enough ? Health::kGood : Health::kBad,
         absl::StrCat("spills take ", Gib(report_.plan->disk), " of ", Gib(*report_.disk_bytes),
                      " free in ", options_.spill_folder));
  }

  void Data() {
    if (folder_ == nullptr) {
      return Find("data", Health::kNotChecked, "a preset has none");
    }
    const absl::StatusOr<StepReader> data = OpenRunData(*folder_);
    if (!data.ok()) return Bad("data", data.status());
    Find("data", Health::kGood,
         absl::StrCat("corpus ", run_.corpus.ToHex().substr(0, 16), " at ",
                      absl::StrJoin(folder_->places().corpus, ", ")));
  }

  void Start() {
    report_.windows = run_.batch.front().windows_per_step;
    if (folder_ == nullptr) {
      return Find("start", Health::kNotChecked, "a preset has no records");
    }
    const absl::StatusOr<std::vector<audit::StepRecord>> records = ReadRecords(*folder_);
    if (!records.ok()) return Bad("start", records.status());
    uint64_t step = run_.parent ? static_cast<uint64_t>(run_.parent->step) : 0;
    if (!records->empty()) {
      step = records->back().step;
      report_.windows = static_cast<int64_t>(records->back().tokens) / run_.model.seq_len;
    }
    const absl::StatusOr<StartPoint> start = FindStart(*folder_, step);
    if (!start.ok()) return Bad("start", start.status());
    if (!start->checkpoint.empty()) {
      const auto manifest = ReadCheckpointManifest(start->checkpoint);
      if (!manifest.ok()) return Bad("start", manifest.status());
      const absl::Status status = audit::CheckpointIsOfRun(*manifest, run_);
      if (!status.ok()) return Bad("start", WithContext(status, start->checkpoint));
    }
    const std::string from = start->checkpoint.empty() ? "the initial state" : start->checkpoint;
    Find("start", Health::kGood,
         records->empty() ? absl::StrCat(from, "; the run has no records yet")
                          : absl::StrFormat("%s, %d before the last of %d recorded steps", from,
                                            step - start->step, records->size()));
  }

  void Time() {
    if (!options_.probe) return Find("time", Health::kNotChecked, "not asked for");
    if (!report_.plan || !processor_) {
      return Find("time", Health::kNotChecked, "the step does not fit this machine");
    }
    const absl::StatusOr<StepEstimate> estimate = Probe();
    if (absl::IsResourceExhausted(estimate.status())) {
      return Find("time", Health::kNotChecked, std::string(estimate.status().message()));
    }
    if (!estimate.ok()) return Bad("time", estimate.status());
    report_.estimate = *estimate;
    const StepTimes& t = estimate->times;
    Find("time", Health::kGood,
         absl::StrFormat(
             "about %s for a step of %d windows: model %s, reduction %s, update %s, hashing %s\n"
             "(from a step of one layer and a cut vocabulary that took %s in all, times the run's "
             "layers, words, parameters and %d micro-batches%s)",
             Seconds(t.total()), report_.windows, Seconds(t.model), Seconds(t.reduce),
             Seconds(t.update), Seconds(t.hash), Seconds(estimate->probe_seconds),
             estimate->micro_batches,
             report_.plan->disk > 0 ? "; spills may be slower than the probe's" : ""));
  }

  absl::StatusOr<StepEstimate> Probe() {
    const audit::RunManifest probe = ProbeManifest(run_, ProbeVocab(run_));
    const int64_t bytes = PlanMemory(probe, report_.plan->choices).memory();
    const int64_t limit = std::min(kProbeBytesMax, report_.memory_bytes.value_or(kProbeBytesMax));
    if (bytes > limit) {
      return absl::ResourceExhaustedError(absl::StrCat("no estimate: one layer of this run takes ",
                                                       Gib(bytes), ", more than ", Gib(limit)));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                              CreateCpuBackend(options_.threads));
    return EstimateStep(*backend, run_, report_.windows, report_.plan->choices,
                        options_.spill_folder);
  }

  const audit::RunManifest& run_;
  const RunFolder* const folder_;
  const DoctorOptions& options_;
  DoctorReport report_;
  bool processor_ = false;
};

}  // namespace

absl::string_view HealthName(Health health) {
  switch (health) {
    case Health::kGood:
      return "good";
    case Health::kBad:
      return "bad";
    case Health::kNotChecked:
      return "not checked";
  }
  return "";
}

bool DoctorReport::can_replay() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.health == Health::kBad; });
}

DoctorReport Diagnose(const audit::RunManifest& run, const RunFolder* folder,
                      const DoctorOptions& options) {
  return Doctor(run, folder, options).Run();
}

}  // namespace lockstep::engine
