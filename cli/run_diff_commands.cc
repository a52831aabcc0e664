// SPDX-License-Identifier: Apache-2.0
//
// `lockstep run diff | plot`: runs held against each other, in words and in a picture.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "audit/verdict.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "engine/run/plot.h"
#include "engine/run/read_records.h"
#include "engine/run/run_folder.h"

namespace lockstep::cli {
namespace {

using audit::StepRecord;
using Json = nlohmann::json;

struct LoadedRun {
  engine::RunFolder folder;
  std::vector<StepRecord> records;
};

absl::StatusOr<LoadedRun> LoadRun(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(engine::RunFolder folder, engine::RunFolder::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<StepRecord> records, engine::ReadRecords(folder));
  return LoadedRun{.folder = std::move(folder), .records = std::move(records)};
}

// ---- diff

struct DiffArgs {
  std::string a;
  std::string b;
  bool json = false;
};

// One value of the manifests that differs, by its JSON pointer; null where it is not there.
struct FieldDifference {
  std::string path;
  Json a;
  Json b;
};

std::vector<FieldDifference> CompareManifests(const audit::RunManifest& a,
                                              const audit::RunManifest& b) {
  const Json flat_a = Json::parse(audit::EncodeRunManifest(a)).flatten();
  const Json flat_b = Json::parse(audit::EncodeRunManifest(b)).flatten();
  std::set<std::string> paths;
  for (const Json& flat : {flat_a, flat_b}) {
    for (const auto& [path, value] : flat.items()) paths.insert(path);
  }
  std::vector<FieldDifference> differences;
  for (const std::string& path : paths) {
    const Json value_a = flat_a.value(path, Json());
    const Json value_b = flat_b.value(path, Json());
    if (value_a != value_b) differences.push_back({path, value_a, value_b});
  }
  return differences;
}

// Steps that both runs have a record of, side by side.
struct Common {
  const StepRecord* a = nullptr;
  const StepRecord* b = nullptr;
  size_t steps = 0;
};

Common CommonSteps(const std::vector<StepRecord>& a, const std::vector<StepRecord>& b) {
  if (a.empty() || b.empty()) return {};
  const uint64_t first = std::max(a.front().step, b.front().step);
  const uint64_t end = std::min(a.back().step, b.back().step) + 1;
  if (first >= end) return {};
  return {.a = &a[first - a.front().step],
          .b = &b[first - b.front().step],
          .steps = static_cast<size_t>(end - first)};
}

// The first step whose records differ. `computed`: in what the step computes, whatever the chains
// before it are; runs with different manifests have different chains from the start.
std::optional<audit::Difference> FirstDifference(const Common& common, bool computed) {
  for (size_t i = 0; i < common.steps; ++i) {
    StepRecord b = common.b[i];
    if (computed) b.previous_chain = common.a[i].previous_chain;
    if (auto difference = audit::CompareRecords(common.a[i], b)) return difference;
  }
  return std::nullopt;
}

// Of the losses of the common steps: b - a.
struct LossDifference {
  double last = 0;
  double mean_of_last = 0;  // a tenth of the steps
  size_t last_steps = 0;
  double most = 0;  // in magnitude
  uint64_t most_step = 0;
};

LossDifference CompareLosses(const Common& common) {
  LossDifference out;
  out.last_steps = std::max<size_t>(1, common.steps / 10);
  for (size_t i = 0; i < common.steps; ++i) {
    const double difference =
        static_cast<double>(common.b[i].loss) - static_cast<double>(common.a[i].loss);
    if (i == 0 || std::abs(difference) > std::abs(out.most)) {
      out.most = difference;
      out.most_step = common.a[i].step;
    }
    if (i + out.last_steps >= common.steps) {
      out.mean_of_last += difference / static_cast<double>(out.last_steps);
    }
    out.last = difference;
  }
  return out;
}

// A dozen steps from the first common one to the last.
std::vector<size_t> Samples(size_t steps) {
  constexpr size_t kRows = 12;
  std::vector<size_t> rows;
  for (size_t row = 0; row < kRows; ++row) {
    const size_t at = row * (steps - 1) / (kRows - 1);
    if (rows.empty() || rows.back() != at) rows.push_back(at);
  }
  return rows;
}

Json ToJson(const std::optional<audit::Difference>& difference) {
  if (!difference) return nullptr;
  return {{"step", difference->step},
          {"field", difference->field},
          {"a", difference->expected},
          {"b", difference->found}};
}

Json ToJson(const LoadedRun& run) {
  return {{"folder", run.folder.path()},
          {"run", run.folder.run_id().ToHex()},
          {"steps", run.records.size()},
          {"chain", run.records.empty() ? "" : audit::ChainAfter(run.records.back()).ToHex()}};
}

absl::Status PrintDiffJson(const LoadedRun& a, const LoadedRun& b,
                           const std::vector<FieldDifference>& fields, const Common& common) {
  Json manifest = Json::array();
  for (const FieldDifference& field : fields) {
    manifest.push_back({{"path", field.path}, {"a", field.a}, {"b", field.b}});
  }
  Json losses = Json::array();
  Json summary;
  if (common.steps > 0) {
    for (const size_t i : Samples(common.steps)) {
      losses.push_back(
          {{"step", common.a[i].step}, {"a", common.a[i].loss}, {"b", common.b[i].loss}});
    }
    const LossDifference loss = CompareLosses(common);
    summary = {{"last", loss.last},
               {"mean_of_last", loss.mean_of_last},
               {"last_steps", loss.last_steps},
               {"most", loss.most},
               {"most_step", loss.most_step}};
  }
  Json range;
  if (common.steps > 0) {
    range = {{"first", common.a[0].step}, {"steps", common.steps}};
  }
  return PrintJson({{"a", ToJson(a)},
                    {"b", ToJson(b)},
                    {"manifest", manifest},
                    {"common", range},
                    {"chain_parts", ToJson(FirstDifference(common, false))},
                    {"computation_parts", ToJson(FirstDifference(common, true))},
                    {"losses", losses},
                    {"loss_difference", summary}});
}

void PrintDifference(absl::string_view what, const audit::Difference& difference) {
  absl::PrintF("%s at step %d: %s differs\n  a %s\n  b %s\n", what, difference.step,
               difference.field, difference.expected, difference.found);
}

void PrintDiff(const LoadedRun& a, const LoadedRun& b, const std::vector<FieldDifference>& fields,
               const Common& common) {
  for (const auto& [name, run] : {std::pair{"a", &a}, std::pair{"b", &b}}) {
    absl::PrintF("%s  %s  %d steps  %s\n", name, run->folder.run_id().ToHex().substr(0, 16),
                 run->records.size(), run->folder.path());
  }
  absl::PrintF("\nmanifest: %s\n", fields.empty() ? "the same" : "");
  for (const FieldDifference& field : fields) {
    const auto shown = [](const Json& value) { return value.is_null() ? "none" : value.dump(); };
    absl::PrintF("  %-28s a %s\n  %-28s b %s\n", field.path, shown(field.a), "", shown(field.b));
  }
  if (common.steps == 0) {
    absl::PrintF("\nsteps: none in common\n");
    return;
  }
  const uint64_t first = common.a[0].step;
  absl::PrintF("\nsteps %d to %d: ", first, first + common.steps - 1);
  const auto chain = FirstDifference(common, false);
  const auto computed = FirstDifference(common, true);
  if (!chain) {
    absl::PrintF("all records agree\n");
  } else {
    PrintDifference("the chain parts", *chain);
    if (!computed) {
      absl::PrintF("apart from the chain every record agrees\n");
    } else if (computed->step != chain->step || computed->field != chain->field) {
      PrintDifference("the computation parts", *computed);
    }
  }
  absl::PrintF("\n%10s %16s %10s %10s %10s\n", "step", "tokens", "loss a", "loss b", "b - a");
  for (const size_t i : Samples(common.steps)) {
    const StepRecord& left = common.a[i];
    const StepRecord& right = common.b[i];
    absl::PrintF("%10d %16d %10.4f %10.4f %+10.4f\n", left.step, left.tokens_before + left.tokens,
                 left.loss, right.loss, right.loss - left.loss);
  }
  const LossDifference loss = CompareLosses(common);
  absl::PrintF("b - a: mean of the last %d steps %+.4f, largest %+.4f at step %d\n",
               loss.last_steps, loss.mean_of_last, loss.most, loss.most_step);
}

absl::Status RunDiff(const DiffArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedRun a, LoadRun(args.a));
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedRun b, LoadRun(args.b));
  const std::vector<FieldDifference> fields =
      CompareManifests(a.folder.manifest(), b.folder.manifest());
  const Common common = CommonSteps(a.records, b.records);
  if (args.json) {
    LOCKSTEP_RETURN_IF_ERROR(PrintDiffJson(a, b, fields, common));
  } else {
    PrintDiff(a, b, fields, common);
  }
  return FirstDifference(common, false) ? ExitWith(kExitMismatch) : absl::OkStatus();
}

// ---- plot

struct PlotArgs {
  std::vector<std::string> runs;
  std::string out;
  bool json = false;
};

absl::Status RunPlot(const PlotArgs& args) {
  std::vector<engine::PlotRun> runs;
  Json steps = Json::array();
  size_t points = 0;
  for (const std::string& path : args.runs) {
    LOCKSTEP_ASSIGN_OR_RETURN(LoadedRun run, LoadRun(path));
    points += run.records.size();
    steps.push_back({{"folder", path}, {"steps", run.records.size()}});
    runs.push_back(
        {.label = std::string(absl::StripSuffix(path, "/")), .records = std::move(run.records)});
  }
  if (points == 0) {
    return absl::NotFoundError(absl::StrCat(args.runs[0], ": no step is recorded; `lockstep train ",
                                            args.runs[0], "` makes some"));
  }
  LOCKSTEP_RETURN_IF_ERROR(WriteFileAtOnce(args.out, AsBytes(engine::PlotRuns(runs))));
  if (args.json) return PrintJson({{"out", args.out}, {"runs", steps}});
  return Print(absl::StrFormat("%s: %d steps of %d runs\n", args.out, points, runs.size()));
}

}  // namespace

void AddRunDiffCommands(CLI::App& run, Action* chosen) {
  auto diff_args = std::make_shared<DiffArgs>();
  CLI::App* diff = run.add_subcommand(
      "diff",
      "Compares two runs: manifests by field, step records over the steps that both have.\n"
      "Exit code 3 if a record differs.");
  diff->add_option("a", diff_args->a, "folder of a run")->required();
  diff->add_option("b", diff_args->b, "folder of another")->required();
  diff->add_flag("--json", diff_args->json, "print JSON");
  diff->callback([diff_args, chosen] { *chosen = [diff_args] { return RunDiff(*diff_args); }; });

  auto plot_args = std::make_shared<PlotArgs>();
  CLI::App* plot = run.add_subcommand(
      "plot",
      "Draws loss, gradient norm and learning rate of runs against consumed tokens, as an SVG.");
  plot->add_option("runs", plot_args->runs, "folders of runs")->required();
  plot->add_option("--out", plot_args->out, "file to write")->required();
  plot->add_flag("--json", plot_args->json, "print JSON");
  plot->callback([plot_args, chosen] { *chosen = [plot_args] { return RunPlot(*plot_args); }; });
}

}  // namespace lockstep::cli
