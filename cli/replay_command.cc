// SPDX-License-Identifier: Apache-2.0
//
// `lockstep replay`: steps of a run computed again and held against its records.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "audit/step_log.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "engine/run/replay.h"
#include "engine/run/run_folder.h"
#include "engine/state/checkpoint.h"

namespace lockstep::cli {
namespace {

struct ReplayArgs {
  std::string folder;
  std::string steps;
  std::string from;
  std::string records;
  EngineOptions engine;
  bool json = false;
};

// "120..139", both included; "120"; "": all.
absl::Status ParseSteps(const std::string& text, const std::vector<audit::StepRecord>& published,
                        engine::ReplayOptions* options) {
  if (text.empty()) {
    options->begin = published.front().step;
    options->end = published.back().step + 1;
    return absl::OkStatus();
  }
  const std::vector<std::string> parts = absl::StrSplit(text, "..");
  uint64_t last = 0;
  const bool good = parts.size() <= 2 && absl::SimpleAtoi(parts.front(), &options->begin) &&
                    absl::SimpleAtoi(parts.back(), &last) && options->begin <= last;
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--steps: expected FIRST..LAST or one step, as in 120..139; found \"", text, "\""));
  }
  if (options->begin < published.front().step || last > published.back().step) {
    return absl::OutOfRangeError(absl::StrCat("--steps: expected steps with a record, ",
                                              published.front().step, " to ", published.back().step,
                                              "; found ", text));
  }
  options->end = last + 1;
  return absl::OkStatus();
}

absl::StatusOr<engine::StartPoint> StartAt(const std::string& from) {
  if (from == "init") return engine::StartPoint{};
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            engine::ReadCheckpointManifest(from), "--from");
  return engine::StartPoint{.step = manifest.next_step(), .checkpoint = from};
}

absl::Status PrintReport(const engine::ReplayReport& report, bool json) {
  const std::string verdict(audit::VerdictName(report.verdict));
  if (json) {
    nlohmann::json out = {{"verdict", verdict},
                          {"matched_steps", report.matched},
                          {"start_step", report.start.step},
                          {"start", report.start.checkpoint}};
    if (report.difference) {
      out["difference"] = {{"step", report.difference->step},
                           {"field", report.difference->field},
                           {"published", report.difference->expected},
                           {"replayed", report.difference->found},
                           {"place", report.difference->place}};
    }
    if (!report.reason.ok()) out["reason"] = std::string(report.reason.message());
    return PrintJson(out);
  }
  absl::PrintF("%s: %d steps agree\n", verdict, report.matched);
  if (report.difference) {
    const audit::Difference& d = *report.difference;
    absl::PrintF("step %d: %s differs%s\n  published %s\n  replayed  %s\n", d.step, d.field,
                 d.place.empty() ? "" : absl::StrCat(": ", d.place), d.expected, d.found);
  }
  if (!report.reason.ok()) absl::PrintF("%s\n", std::string(report.reason.message()));
  return absl::OkStatus();
}

absl::Status RunReplay(const ReplayArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, engine::RunFolder::Open(args.folder));
  const std::string path = args.records.empty() ? run.StepLogPath() : args.records;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<audit::StepRecord> published,
                            audit::ReadStepLog(path));
  if (published.empty()) return absl::NotFoundError(absl::StrCat(path, ": no step is recorded"));
  engine::ReplayOptions options;
  LOCKSTEP_RETURN_IF_ERROR(ParseSteps(args.steps, published, &options));
  if (!args.from.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.start, StartAt(args.from));
    if (options.start->step > options.begin) {
      return absl::InvalidArgumentError(absl::StrCat("--from: expected a state before step ",
                                                     options.begin, "; ", args.from,
                                                     " stands before step ", options.start->step));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::MemoryPlan plan,
                            ChoosePlan(args.engine, run.manifest(), args.json));
  options.memory = plan.choices;
  options.spill_folder = args.engine.spill.empty() ? run.path() : args.engine.spill;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                            CreateBackend(args.engine));
  std::optional<Progress> progress;
  engine::ReplayHooks hooks;
  hooks.interrupted = Interrupted;
  hooks.started = [&](const engine::StartPoint& start) {
    progress.emplace("replay", static_cast<int64_t>(options.end - start.step), "steps", args.json);
  };
  hooks.stepped = [&](const engine::StepResult&, const audit::Difference*, engine::TrainState&) {
    progress->Add(1);
    return absl::OkStatus();
  };
  const engine::ReplayReport report = engine::Replay(*backend, run, published, options, hooks);
  progress.reset();
  LOCKSTEP_RETURN_IF_ERROR(PrintReport(report, args.json));
  if (report.verdict == audit::Verdict::kMismatch) return ExitWith(kExitMismatch);
  return report.reason;
}

}  // namespace

void AddReplayCommand(CLI::App& app, Action* chosen) {
  auto args = std::make_shared<ReplayArgs>();
  CLI::App* replay = app.add_subcommand(
      "replay",
      "Computes steps of a run again and compares them with its published records.\n"
      "match: exit code 0. mismatch: 3, with the first difference. inconclusive: another code, "
      "with "
      "the reason.");
  replay->add_option("folder", args->folder, "folder of the run")->required();
  replay->add_option("--steps", args->steps, "FIRST..LAST, or one step; all if not given");
  replay->add_option("--from", args->from,
                     "checkpoint to start from, or init; the latest before the steps if not given");
  replay->add_option("--records", args->records,
                     "published step records; the run folder's steps.log if not given");
  AddEngineOptions(*replay, args->engine);
  replay->add_flag("--json", args->json, "print JSON");
  replay->callback([args, chosen] { *chosen = [args] { return RunReplay(*args); }; });
}

}  // namespace lockstep::cli
