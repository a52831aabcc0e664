// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint verify | export`: states on disk, proved and given to other tools.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "audit/run_manifest.h"
#include "base/directory.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "engine/eval/run_tokenizer.h"
#include "engine/model/parameters.h"
#include "engine/run/run_folder.h"
#include "engine/state/checkpoint.h"
#include "engine/state/checkpoint_parameters.h"
#include "engine/state/export.h"
#include "engine/state/locate_damage.h"
#include "engine/tokenizer/formats.h"

namespace lockstep::cli {
namespace {

struct CheckpointArgs {
  std::string checkpoint;
  std::string run;
  std::string tokenizer;  // of export
  std::string out;        // likewise
  EngineOptions engine;
  bool json = false;
};

absl::StatusOr<engine::RunFolder> OpenRun(const CheckpointArgs& args) {
  return args.run.empty() ? engine::FindRunOfCheckpoint(args.checkpoint)
                          : engine::RunFolder::Open(args.run);
}

// ---- verify

// The error of a damaged checkpoint, with the tensor where the run's leaves can tell it.
absl::Status WithPlace(const absl::Status& error, const engine::RunFolder& run,
                       const std::string& checkpoint) {
  if (!absl::IsDataLoss(error)) return error;
  const absl::StatusOr<std::string> place = engine::LocateDamage(run, checkpoint);
  if (!place.ok()) return error;
  return absl::DataLossError(
      absl::StrCat(error.message(), "\nfirst bytes that are not the committed ones: ", *place));
}

absl::Status RunVerify(const CheckpointArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, OpenRun(args));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                            CreateBackend(args.engine));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            engine::ReadCheckpointManifest(args.checkpoint));
  int64_t bytes = 0;
  for (const audit::CheckpointFile& file : manifest.files) bytes += file.bytes;
  absl::StatusOr<engine::CheckpointReport> report;
  {
    Progress progress("verify", 2 * bytes, "B", args.json);  // files, then tensors
    report = engine::VerifyCheckpoint(*backend, run.manifest(), args.checkpoint,
                                      [&](int64_t n) { progress.Add(n); });
  }
  if (!report.ok()) return WithPlace(report.status(), run, args.checkpoint);
  const audit::CheckpointManifest& checked = report->manifest;
  if (args.json) {
    return PrintJson({{"checkpoint", args.checkpoint},
                      {"run", checked.run_id.ToHex()},
                      {"next_step", checked.next_step()},
                      {"tokens", checked.tokens()},
                      {"chain", checked.chain().ToHex()},
                      {"tensors", report->tensors},
                      {"bytes", report->bytes}});
  }
  absl::PrintF(
      "%s: whole, and the state that its record commits to\n"
      "run      %s\nstate    before step %d, %d tokens consumed\nchain    %s\n"
      "checked  %d tensors, %d bytes\n",
      args.checkpoint, checked.run_id.ToHex(), checked.next_step(), checked.tokens(),
      checked.chain().ToHex(), report->tensors, report->bytes);
  return absl::OkStatus();
}

// ---- export

absl::Status RunExport(const CheckpointArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, OpenRun(args));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto tokenizer,
      engine::LoadRunTokenizer(run.manifest(),
                               args.tokenizer.empty() ? run.places().tokenizer : args.tokenizer));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string tokenizer_json, engine::ExportHuggingFace(*tokenizer),
                            "tokenizer");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                            CreateBackend(args.engine));
  std::error_code error;
  std::filesystem::path out = std::filesystem::absolute(args.out, error).lexically_normal();
  if (!out.has_filename()) out = out.parent_path();
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(out.parent_path().string()));
  const int64_t element_bytes =
      run.manifest().parameter_storage == audit::ParameterStorage::kF32 ? 4 : 2;
  engine::ExportReport report;
  {
    Progress progress("export",
                      engine::ParameterLayout(run.manifest().model).elements() * element_bytes, "B",
                      args.json);
    LOCKSTEP_ASSIGN_OR_RETURN(
        report, engine::ExportCheckpoint(*backend, run.manifest(), args.checkpoint, tokenizer_json,
                                         tokenizer->end_of_text(), out.string(),
                                         [&](int64_t n) { progress.Add(n); }));
  }
  if (args.json) {
    return PrintJson({{"out", out.string()},
                      {"run", report.manifest.run_id.ToHex()},
                      {"next_step", report.manifest.next_step()},
                      {"chain", report.manifest.chain().ToHex()},
                      {"tensors", report.tensors},
                      {"parameters", report.parameters},
                      {"bytes", report.bytes}});
  }
  absl::PrintF(
      "%s: model.safetensors (%d tensors, %d parameters in bf16), config.json, tokenizer.json\n"
      "the model before step %d of run %s\n",
      out.string(), report.tensors, report.parameters, report.manifest.next_step(),
      report.manifest.run_id.ToHex());
  return absl::OkStatus();
}

void AddCommonOptions(CLI::App& command, CheckpointArgs& args) {
  command.add_option("checkpoint", args.checkpoint, "folder of the checkpoint")->required();
  command.add_option("--run", args.run,
                     "folder of its run; the one that the checkpoint lies in if not given");
  command
      .add_option("--threads", args.engine.threads,
                  "threads; as many as there are CPUs if not given")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--json", args.json, "print JSON");
}

}  // namespace

void AddCheckpointCommands(CLI::App& app, Action* chosen) {
  CLI::App* checkpoint = app.add_subcommand("checkpoint", "states on disk: proved, exported");
  checkpoint->require_subcommand(1);

  auto verify_args = std::make_shared<CheckpointArgs>();
  CLI::App* verify = checkpoint->add_subcommand(
      "verify",
      "Checks a checkpoint's files against their digests, its tensors against the roots that its\n"
      "step record commits to. Exit code 5 if they differ, with the file, and with the tensor if "
      "the\nrun kept that step's leaves. What is checked: docs/checkpoint.md.");
  AddCommonOptions(*verify, *verify_args);
  verify->callback(
      [verify_args, chosen] { *chosen = [verify_args] { return RunVerify(*verify_args); }; });

  auto export_args = std::make_shared<CheckpointArgs>();
  CLI::App* out = checkpoint->add_subcommand(
      "export",
      "Writes a checkpoint's model for other tools: model.safetensors in bf16 under the usual\n"
      "names, config.json, tokenizer.json. The weights are proved on the way.");
  AddCommonOptions(*out, *export_args);
  out->add_option("--out", export_args->out, "the new folder")->required();
  out->add_option("--tokenizer", export_args->tokenizer,
                  "the run's tokenizer file; the one that the run folder names if not given");
  out->callback(
      [export_args, chosen] { *chosen = [export_args] { return RunExport(*export_args); }; });
}

}  // namespace lockstep::cli
