// SPDX-License-Identifier: Apache-2.0
//
// `lockstep eval`: a checkpoint's model on held-out texts and on multiple-choice questions.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/held_out.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "engine/eval/checkpoint_model.h"
#include "engine/eval/held_out.h"
#include "engine/eval/json_lines.h"
#include "engine/eval/multiple_choice.h"
#include "engine/eval/run_tokenizer.h"
#include "engine/run/run_folder.h"
#include "engine/run/run_inputs.h"
#include "engine/state/checkpoint_parameters.h"

namespace lockstep::cli {
namespace {

using engine::HeldOutResult;
using engine::MultipleChoiceResult;
using Json = nlohmann::json;

struct EvalArgs {
  std::string target;  // folder of a run or of a checkpoint
  std::string run;
  std::string tokenizer;
  std::vector<std::string> held_out;
  std::vector<std::string> questions;
  int64_t limit = 0;
  bool keep = false;
  EngineOptions engine;
  bool json = false;
};

template <class Result>
using ByFile = std::vector<std::pair<std::string, Result>>;

// What is evaluated: the run, and the folder of one of its checkpoints.
struct Target {
  engine::RunFolder run;
  std::string checkpoint;
};

absl::StatusOr<Target> FindTarget(const EvalArgs& args) {
  std::error_code error;
  if (args.run.empty() && std::filesystem::exists(args.target + "/run.json", error)) {
    LOCKSTEP_ASSIGN_OR_RETURN(engine::RunFolder run, engine::RunFolder::Open(args.target));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, run.Checkpoints());
    if (steps.empty()) {
      return absl::NotFoundError(absl::StrCat(args.target,
                                              ": the run has no checkpoint yet; `lockstep train ",
                                              args.target, "` makes them"));
    }
    std::string checkpoint = run.CheckpointPath(steps.back());
    return Target{.run = std::move(run), .checkpoint = std::move(checkpoint)};
  }
  if (!args.run.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(engine::RunFolder run, engine::RunFolder::Open(args.run));
    return Target{.run = std::move(run), .checkpoint = args.target};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(engine::RunFolder run, engine::FindRunOfCheckpoint(args.target));
  return Target{.run = std::move(run), .checkpoint = args.target};
}

engine::EvalHooks HooksOf(Progress& progress) {
  return {.interrupted = Interrupted, .done = [&progress](int64_t n) { progress.Add(n); }};
}

absl::StatusOr<MultipleChoiceResult> EvaluateQuestions(engine::LossSource& model,
                                                       const engine::Tokenizer& tokenizer,
                                                       const std::string& path,
                                                       const EvalArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<engine::Question> questions,
                            engine::ReadQuestions(path, args.limit));
  Progress progress(path, engine::ContinuationsOf(questions), "choices", args.json);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<engine::QuestionScores> scores,
                            engine::ScoreQuestions(model, tokenizer, questions, HooksOf(progress)));
  MultipleChoiceResult result = engine::Tally(questions, scores);
  if (result.questions == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a question whose choices fit into a window of ",
                     model.seq_len(), " tokens; found none"));
  }
  return result;
}

// ---- what is printed

Json ToJson(const HeldOutResult& result) {
  return {{"documents", result.documents},
          {"bytes", result.bytes},
          {"tokens", result.tokens},
          {"nats_per_token", result.NatsPerToken()},
          {"bits_per_byte", result.BitsPerByte()}};
}

Json ToJson(const MultipleChoiceResult& result) {
  return {{"questions", result.questions},
          {"letter_accuracy", result.LetterAccuracy()},
          {"completion_accuracy", result.CompletionAccuracy()},
          {"best_accuracy", result.BestAccuracy()},
          {"majority_accuracy", result.MajorityAccuracy()},
          {"cut", result.cut},
          {"left_out", result.left_out}};
}

// {"files": [...], "all": {...}}
template <class Result>
Json ToJson(const ByFile<Result>& results) {
  Json files = Json::array();
  Result all;
  for (const auto& [path, result] : results) {
    Json file = ToJson(result);
    file["file"] = path;
    files.push_back(std::move(file));
    all.Add(result);
  }
  return {{"files", std::move(files)}, {"all", ToJson(all)}};
}

std::string NameOf(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void PrintLine(const std::string& name, const HeldOutResult& r) {
  absl::PrintF("%-24s %10d %12d %10d %11.4f %10.4f\n", name, r.documents, r.bytes, r.tokens,
               r.NatsPerToken(), r.BitsPerByte());
}

void PrintLine(const std::string& name, const MultipleChoiceResult& r) {
  absl::PrintF("%-24s %10d %7.2f%% %10.2f%% %7.2f%% %8.2f%% %6d %8d\n", name, r.questions,
               100 * r.LetterAccuracy(), 100 * r.CompletionAccuracy(), 100 * r.BestAccuracy(),
               100 * r.MajorityAccuracy(), r.cut, r.left_out);
}

template <class Result>
void PrintTable(const ByFile<Result>& results) {
  Result all;
  for (const auto& [path, result] : results) {
    PrintLine(NameOf(path), result);
    all.Add(result);
  }
  if (results.size() > 1) PrintLine("all", all);
}

absl::Status PrintResults(const Target& target, const audit::CheckpointManifest& checkpoint,
                          const ByFile<HeldOutResult>& held_out,
                          const ByFile<MultipleChoiceResult>& questions, bool json) {
  if (json) {
    Json out = {{"checkpoint", target.checkpoint},
                {"run", checkpoint.run_id.ToHex()},
                {"next_step", checkpoint.next_step()},
                {"tokens", checkpoint.tokens()},
                {"chain", checkpoint.chain().ToHex()}};
    if (!held_out.empty()) out["held_out"] = ToJson(held_out);
    if (!questions.empty()) out["questions"] = ToJson(questions);
    return PrintJson(out);
  }
  absl::PrintF("%s: the model before step %d, %d tokens seen\n", target.checkpoint,
               checkpoint.next_step(), checkpoint.tokens());
  if (!held_out.empty()) {
    absl::PrintF("\n%-24s %10s %12s %10s %11s %10s\n", "held-out text", "documents", "bytes",
                 "tokens", "nats/token", "bits/byte");
    PrintTable(held_out);
  }
  if (!questions.empty()) {
    absl::PrintF("\n%-24s %10s %8s %11s %8s %9s %6s %8s\n", "multiple choice", "questions",
                 "letter", "completion", "best", "majority", "cut", "left out");
    PrintTable(questions);
  }
  return absl::OkStatus();
}

absl::Status RunEval(const EvalArgs& args) {
  if (args.keep && args.held_out.empty()) {
    return absl::InvalidArgumentError("--keep: expected --held-out, whose result is kept");
  }
  if (args.held_out.empty() && args.questions.empty()) {
    return absl::InvalidArgumentError(
        "expected --held-out, --questions or both: the files to evaluate on");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto held_out_files, engine::ExpandFolders(args.held_out));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto question_files, engine::ExpandFolders(args.questions));
  LOCKSTEP_ASSIGN_OR_RETURN(const Target target, FindTarget(args));
  const audit::RunManifest& run = target.run.manifest();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto tokenizer,
      engine::LoadRunTokenizer(
          run, args.tokenizer.empty() ? target.run.places().tokenizer : args.tokenizer));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                            CreateBackend(args.engine));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto model,
      engine::CheckpointModel::Load(*backend, run, target.checkpoint, [](int64_t) {}));

  LOCKSTEP_ASSIGN_OR_RETURN(
      const HeldOutByFile held_out,
      EvaluateFiles(*model, *tokenizer, held_out_files, args.limit, args.json));
  if (args.keep) {
    LOCKSTEP_RETURN_IF_ERROR(KeepEvaluation(target.run, model->checkpoint(), held_out, args.limit));
  }
  ByFile<MultipleChoiceResult> questions;
  for (const std::string& path : question_files) {
    LOCKSTEP_ASSIGN_OR_RETURN(const MultipleChoiceResult result,
                              EvaluateQuestions(*model, *tokenizer, path, args));
    questions.emplace_back(path, result);
  }
  return PrintResults(target, model->checkpoint(), held_out, questions, args.json);
}

}  // namespace

void AddEvalCommand(CLI::App& app, Action* chosen) {
  auto args = std::make_shared<EvalArgs>();
  CLI::App* eval = app.add_subcommand(
      "eval",
      "A checkpoint's model on texts it was not trained on (cross-entropy) and on multiple-choice\n"
      "questions (by the option's letter, and by its text as a completion). The same numbers for\n"
      "any number of threads. Files and rules: docs/evaluation.md.");
  eval->add_option("target", args->target, "folder of a run (its last checkpoint) or a checkpoint")
      ->required();
  eval->add_option("--held-out", args->held_out,
                   "JSONL files of objects with \"text\", or folders of such");
  eval->add_option("--questions", args->questions,
                   "JSONL files of objects with \"question\", \"choices\", \"answer\", or folders");
  eval->add_option("--limit", args->limit, "take the first so many texts or questions of each file")
      ->check(CLI::PositiveNumber);
  eval->add_flag("--keep", args->keep,
                 "keep the held-out result in the run's folder, for `lockstep publish`");
  eval->add_option("--run", args->run, "folder of the checkpoint's run, if it does not lie in it");
  eval->add_option("--tokenizer", args->tokenizer,
                   "the run's tokenizer file; the one that the run folder names if not given");
  eval->add_option("--threads", args->engine.threads,
                   "threads; as many as there are CPUs if not given")
      ->check(CLI::Range(1, 1024));
  eval->add_flag("--json", args->json, "print JSON");
  eval->callback([args, chosen] { *chosen = [args] { return RunEval(*args); }; });
}

}  // namespace lockstep::cli
