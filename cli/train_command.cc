// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train`: a run from where it stands to its end.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/held_out.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/publish_options.h"
#include "engine/run/metrics.h"
#include "engine/run/run_folder.h"
#include "engine/run/train_run.h"
#include "nlohmann/json.hpp"
#include "trainer/publisher.h"

namespace lockstep::cli {
namespace {

struct TrainArgs {
  std::string folder;
  int64_t stop_at = -1;
  engine::TrainOptions options;
  EngineOptions engine;
  PublishOptions publish;
  std::vector<std::string> held_out;
  int64_t held_out_limit = 0;
  bool json = false;
};

// How long the end of a run waits for a coordinator that does not answer.
constexpr absl::Duration kDrainPatience = absl::Seconds(10);

std::string Duration(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  if (s >= 3600) return absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
  return absl::StrFormat("%d:%02d", s / 60, s % 60);
}

// A line on a terminal that is written over at each step; elsewhere one line every ten seconds.
class TrainDisplay {
 public:
  explicit TrainDisplay(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}
  ~TrainDisplay() { EndLine(); }

  void Start(uint64_t step, uint64_t end) {
    first_ = step;
    end_ = end;
    start_ = last_line_ = Clock::now();
  }

  void Step(const audit::StepRecord& record) {
    if (quiet_) return;
    const Clock::time_point now = Clock::now();
    tokens_ += record.tokens;
    const uint64_t done = record.step + 1 - first_;
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const bool last = record.step + 1 == end_;
    if (!terminal_ && !last && now - last_line_ < std::chrono::seconds(10)) return;
    last_line_ = now;
    const double left =
        elapsed / static_cast<double>(done) * static_cast<double>(end_ - record.step - 1);
    const std::string line = absl::StrFormat(
        "step %d/%d  loss %.4f  norm %.3f  lr %.3g  %.0f tokens/s  %s left%s", record.step + 1,
        end_, record.loss, record.gradient_norm, record.learning_rate,
        static_cast<double>(tokens_) / elapsed, Duration(left),
        record.outcome == audit::StepOutcome::kUpdated ? "" : "  (update skipped)");
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
    std::fflush(stderr);
    drawn_ = terminal_;
  }

  void EndLine() {
    if (drawn_) std::fprintf(stderr, "\n");
    drawn_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const bool quiet_;
  const bool terminal_;
  bool drawn_ = false;
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  uint64_t tokens_ = 0;
  Clock::time_point start_;
  Clock::time_point last_line_;
};

// Sends what is still to be sent. That it cannot be sent is no failure of the training.
nlohmann::json FinishPublishing(const TrainArgs& args, trainer::Publisher& publisher) {
  const absl::Status drained = publisher.Drain(kDrainPatience, Interrupted);
  const trainer::PublishStatus status = publisher.status();
  if (!args.json) {
    std::fprintf(stderr, "published: records before step %llu, %llu states\n",
                 static_cast<unsigned long long>(status.next_step),
                 static_cast<unsigned long long>(status.checkpoints));
  }
  if (!drained.ok()) {
    std::fprintf(stderr, "not everything is published: %s\n`lockstep publish %s` sends the rest\n",
                 std::string(drained.message()).c_str(), args.folder.c_str());
  }
  return {{"next_step", status.next_step},
          {"checkpoints", status.checkpoints},
          {"complete", drained.ok()}};
}

absl::Status RunTrain(const TrainArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, engine::RunFolder::Open(args.folder));
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::MemoryPlan plan,
                            ChoosePlan(args.engine, run.manifest(), args.json));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                            CreateBackend(args.engine));
  engine::TrainOptions options = args.options;
  options.memory = plan.choices;
  options.spill_folder = args.engine.spill.empty() ? run.path() : args.engine.spill;
  if (args.stop_at >= 0) options.stop_at = static_cast<uint64_t>(args.stop_at);

  std::unique_ptr<trainer::Publisher> publisher;
  if (!args.publish.coordinator.url.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(publisher, StartPublisher(run, args.publish));
  }
  std::optional<TrainingEvaluation> evaluation;
  if (!args.held_out.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        evaluation, TrainingEvaluation::Create(*backend, run, args.held_out, args.held_out_limit));
  }
  TrainDisplay display(args.json);
  std::optional<engine::MetricsWriter> metrics;
  engine::TrainHooks hooks;
  hooks.interrupted = Interrupted;
  hooks.started = [&](const engine::StartPoint& start, uint64_t end) {
    if (!args.json) {
      std::fprintf(stderr, "%s on %s: from %s to step %llu\n", run.path().c_str(),
                   backend->name().c_str(),
                   start.checkpoint.empty() ? "the initial state" : start.checkpoint.c_str(),
                   static_cast<unsigned long long>(end));
    }
    display.Start(start.step, end);
  };
  hooks.passed_over = [](const engine::StartPoint& damaged, const absl::Status& why) {
    std::fprintf(stderr, "passed over %s for an earlier state: %s\n", damaged.checkpoint.c_str(),
                 std::string(why.message()).c_str());
  };
  hooks.stepped = [&](const engine::StepResult& result, const engine::TrainState& state,
                      bool repeated) -> absl::Status {
    if (!metrics) {
      LOCKSTEP_ASSIGN_OR_RETURN(metrics, engine::MetricsWriter::Open(*backend, run));
    }
    LOCKSTEP_RETURN_IF_ERROR(metrics->Write(result, state, repeated));
    display.Step(result.record);
    return absl::OkStatus();
  };
  hooks.saved = [&](const std::string& folder, double seconds) {
    if (!args.json) {
      display.EndLine();
      std::fprintf(stderr, "saved %s (%.1f s)\n", folder.c_str(), seconds);
    }
    if (!evaluation) return;
    // The training does not depend on it, and goes on.
    const absl::StatusOr<double> nats = evaluation->Evaluate(folder);
    if (!nats.ok()) {
      display.EndLine();
      std::fprintf(stderr, "not evaluated: %s\n", std::string(nats.status().message()).c_str());
    } else if (!args.json) {
      std::fprintf(stderr, "held-out loss %.4f\n", *nats);
    }
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::TrainSummary summary,
                            engine::Train(*backend, run, options, hooks));
  display.EndLine();
  nlohmann::json published;
  if (publisher != nullptr) published = FinishPublishing(args, *publisher);
  if (args.json) {
    nlohmann::json out = {{"run", run.run_id().ToHex()},
                          {"next_step", summary.next_step},
                          {"end", summary.end},
                          {"chain", summary.chain.ToHex()},
                          {"interrupted", summary.interrupted}};
    if (publisher != nullptr) out["published"] = published;
    LOCKSTEP_RETURN_IF_ERROR(PrintJson(out));
  } else {
    absl::PrintF("%s: %d of %d steps\nchain %s\n",
                 summary.interrupted ? "interrupted and saved" : "done", summary.next_step,
                 summary.end, summary.chain.ToHex());
  }
  if (!summary.interrupted) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("interrupted; `lockstep train ", args.folder, "` goes on"));
}

}  // namespace

void AddTrainCommand(CLI::App& app, Action* chosen) {
  auto args = std::make_shared<TrainArgs>();
  CLI::App* train = app.add_subcommand(
      "train",
      "Trains a run to its end, from its last checkpoint if there is one.\n"
      "Ctrl-C saves a checkpoint and stops; after a kill, the next start repeats what was lost.");
  train->add_option("folder", args->folder, "folder of the run")->required();
  train->add_option("--stop-at", args->stop_at, "stop before this step")
      ->check(CLI::NonNegativeNumber);
  train
      ->add_option("--keep-leaves", args->options.keep_leaves,
                   "keep the leaves of so many last steps, which tell where a replay differs; "
                   "-1: of all")
      ->capture_default_str();
  train
      ->add_option("--keep-checkpoints", args->options.keep_checkpoints,
                   "keep so many last checkpoints; -1: all")
      ->capture_default_str();
  train->add_option("--held-out", args->held_out,
                    "JSONL files of objects with \"text\", or folders of such, to evaluate each "
                    "checkpoint on (docs/evaluation.md)");
  train
      ->add_option("--held-out-limit", args->held_out_limit,
                   "take the first so many texts of each file")
      ->check(CLI::PositiveNumber);
  AddEngineOptions(*train, args->engine);
  AddPublishOptions(*train, args->publish);
  train->add_flag("--json", args->json, "print nothing but a JSON summary at the end");
  train->callback([args, chosen] { *chosen = [args] { return RunTrain(*args); }; });
}

}  // namespace lockstep::cli
