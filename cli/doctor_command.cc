// SPDX-License-Identifier: Apache-2.0
//
// `lockstep doctor`: whether this machine can replay a step of a run.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "audit/presets.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/threads.h"
#include "engine/run/doctor.h"
#include "engine/run/run_folder.h"

namespace lockstep::cli {
namespace {

struct DoctorArgs {
  std::string folder;
  std::string preset;
  int threads = 0;
  double memory_gib = 0;
  std::string spill;
  bool no_probe = false;
  bool json = false;
};

absl::Status PrintDoctorJson(const engine::DoctorReport& report) {
  nlohmann::json findings = nlohmann::json::array();
  for (const engine::Finding& finding : report.findings) {
    findings.push_back({{"what", finding.what},
                        {"health", engine::HealthName(finding.health)},
                        {"detail", finding.detail}});
  }
  nlohmann::json out = {{"can_replay", report.can_replay()}, {"findings", findings}};
  if (report.memory_bytes) out["memory_bytes"] = *report.memory_bytes;
  if (report.disk_bytes) out["disk_free_bytes"] = *report.disk_bytes;
  if (report.plan) {
    const engine::MemoryPlan& plan = *report.plan;
    out["plan"] = {{"memory_bytes", plan.memory()},
                   {"disk_bytes", plan.disk},
                   {"recompute", plan.choices.recompute},
                   {"spill_partials", plan.choices.spill_partials},
                   {"spill_state", plan.choices.spill_state}};
  }
  if (report.estimate) {
    const engine::StepTimes& times = report.estimate->times;
    out["step"] = {
        {"windows", report.windows},      {"micro_batches", report.estimate->micro_batches},
        {"seconds", times.total()},       {"model_seconds", times.model},
        {"reduce_seconds", times.reduce}, {"update_seconds", times.update},
        {"hash_seconds", times.hash},     {"probe_seconds", report.estimate->probe_seconds}};
  }
  return PrintJson(out);
}

absl::Status PrintDoctor(const engine::DoctorReport& report) {
  std::string text;
  for (const engine::Finding& finding : report.findings) {
    absl::StrAppendFormat(
        &text, "%-11s%-13s%s\n", finding.what, engine::HealthName(finding.health),
        absl::StrReplaceAll(finding.detail, {{"\n", absl::StrCat("\n", std::string(24, ' '))}}));
  }
  if (report.plan) absl::StrAppend(&text, "\nmemory plan\n", report.plan->ToTable());
  absl::StrAppend(&text, report.can_replay() ? "\nThis machine can replay a step of the run.\n"
                                             : "\nThis machine cannot replay a step of the run.\n");
  return Print(text);
}

absl::Status RunDoctor(const DoctorArgs& args) {
  if (args.folder.empty() == args.preset.empty()) {
    return absl::InvalidArgumentError("expected the folder of a run, or --preset");
  }
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  engine::DoctorOptions options;
  options.threads = args.threads > 0 ? args.threads : DefaultThreads();
  if (args.memory_gib > 0) options.memory_bytes = static_cast<int64_t>(args.memory_gib * kGiB);
  options.probe = !args.no_probe;
  options.spill_folder = !args.spill.empty()    ? args.spill
                         : !args.folder.empty() ? args.folder
                                                : ".";
  std::optional<engine::RunFolder> folder;
  audit::RunManifest run;
  if (!args.folder.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(folder, engine::RunFolder::Open(args.folder));
    run = folder->manifest();
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(run, audit::Preset(args.preset));
  }
  const engine::DoctorReport report = engine::Diagnose(run, folder ? &*folder : nullptr, options);
  LOCKSTEP_RETURN_IF_ERROR(args.json ? PrintDoctorJson(report) : PrintDoctor(report));
  return report.can_replay() ? absl::OkStatus() : ExitWith(kExitFailure);
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action* chosen) {
  auto args = std::make_shared<DoctorArgs>();
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "Says whether this machine can replay a step of a run: processor, memory, disk, data, a\n"
      "state to start from, and about how long it takes. Exit code 1 if it cannot.");
  doctor->add_option("folder", args->folder, "folder of the run");
  doctor->add_option("--preset", args->preset, "a preset's run instead, without data");
  doctor->add_option("--threads", args->threads, "threads; as many as there are CPUs if not given")
      ->check(CLI::Range(1, 1024));
  doctor
      ->add_option("--memory", args->memory_gib,
                   "GiB that the replay may take; what the system says is free if not given")
      ->check(CLI::PositiveNumber);
  doctor->add_option("--spill-folder", args->spill,
                     "where arrays go that do not fit; the run's folder if not given");
  doctor->add_flag("--no-probe", args->no_probe, "do not measure the time of a step");
  doctor->add_flag("--json", args->json, "print JSON");
  doctor->callback([args, chosen] { *chosen = [args] { return RunDoctor(*args); }; });
}

}  // namespace lockstep::cli
