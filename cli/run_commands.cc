// SPDX-License-Identifier: Apache-2.0
//
// `lockstep run init | inspect`: runs begun and looked at.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "audit/presets.h"
#include "audit/run_manifest.h"
#include "audit/step_log.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "engine/data/open_corpus.h"
#include "engine/model/parameters.h"
#include "engine/run/run_folder.h"
#include "engine/run/run_inputs.h"
#include "engine/run_config.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::json;

// ---- init

struct InitArgs {
  std::string config;
  std::string out;
  std::string example;
  bool json = false;
};

absl::Status RunInit(const InitArgs& args) {
  if (!args.example.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, engine::ExampleRunConfig(args.example));
    std::printf("%s", text.c_str());
    return absl::OkStatus();
  }
  if (args.config.empty() || args.out.empty()) {
    return absl::InvalidArgumentError(
        "expected a run.toml and --out; `lockstep run init --example tiny` prints a run.toml to "
        "begin with");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunConfig config, engine::LoadRunConfig(args.config));
  engine::CorpusLocation location;
  location.places = {config.corpus_path};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto corpus, engine::OpenCorpus(location), args.config,
                            ": corpus");
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tokenizer, engine::Tokenizer::Load(config.tokenizer_path),
                            args.config, ": tokenizer");
  if (tokenizer->digest() != corpus->manifest().tokenizer) {
    return absl::InvalidArgumentError(
        absl::StrCat(args.config, ": expected the tokenizer that the corpus was built with, ",
                     corpus->manifest().tokenizer.ToHex(), "; found ", tokenizer->digest().ToHex(),
                     " in ", config.tokenizer_path));
  }
  if (tokenizer->vocab_size() > config.manifest.model.vocab) {
    return absl::InvalidArgumentError(
        absl::StrCat(args.config, ": expected model.vocab of at least ", tokenizer->vocab_size(),
                     ", the tokenizer's size; found ", config.manifest.model.vocab));
  }
  std::optional<audit::ParentSegment> parent;
  if (!config.parent_path.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder folder,
                              engine::RunFolder::Open(config.parent_path), args.config, ": parent");
    LOCKSTEP_ASSIGN_OR_RETURN(parent, engine::ParentAt(folder, config.parent_step), args.config,
                              ": parent");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const audit::RunManifest manifest,
      engine::ResolveRunConfig(config, corpus->digest(), tokenizer->digest(), parent), args.config);
  std::error_code error;
  const auto absolute = [&](const std::string& path) {
    return std::filesystem::absolute(path, error).lexically_normal().string();
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      const engine::RunFolder run,
      engine::RunFolder::Create(
          args.out, manifest,
          {.corpus = {absolute(config.corpus_path)},
           .tokenizer = absolute(config.tokenizer_path),
           .parent = config.parent_path.empty() ? "" : absolute(config.parent_path)}));
  if (args.json) {
    LOCKSTEP_RETURN_IF_ERROR(PrintJson({{"run", run.run_id().ToHex()}, {"folder", run.path()}}));
  } else {
    absl::PrintF("run %s\n%s: ready; `lockstep train %s` starts it\n", run.run_id().ToHex(),
                 run.path(), run.path());
  }
  return absl::OkStatus();
}

// ---- inspect

struct InspectArgs {
  std::string folder;
  bool json = false;
};

absl::Status RunInspect(const InspectArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, engine::RunFolder::Open(args.folder));
  const audit::RunManifest& manifest = run.manifest();
  const engine::ParameterLayout layout(manifest.model);
  std::vector<audit::StepRecord> records;
  if (std::filesystem::exists(run.StepLogPath())) {
    LOCKSTEP_ASSIGN_OR_RETURN(records, audit::ReadStepLog(run.StepLogPath()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> checkpoints, run.Checkpoints());
  const std::string chain = records.empty() ? "" : audit::ChainAfter(records.back()).ToHex();
  if (args.json) {
    LOCKSTEP_RETURN_IF_ERROR(
        PrintJson({{"run", run.run_id().ToHex()},
                   {"manifest", Json::parse(audit::EncodeRunManifest(manifest))},
                   {"parameters", layout.elements()},
                   {"steps", records.size()},
                   {"loss", records.empty() ? Json() : Json(records.back().loss)},
                   {"chain", chain},
                   {"checkpoints", checkpoints}}));
    return absl::OkStatus();
  }
  const audit::ModelConfig& m = manifest.model;
  absl::PrintF("run         %s (%s)\n", run.run_id().ToHex(), manifest.name);
  absl::PrintF(
      "model       %d layers, width %d, heads %d/%d of %d, ffn %d, vocabulary %d, "
      "sequences of %d: %d parameters\n",
      m.layers, m.width, m.query_heads, m.kv_heads, m.head_dim, m.ffn_width, m.vocab, m.seq_len,
      layout.elements());
  absl::PrintF("precision   %s, parameters stored as %s\n",
               manifest.precision == audit::Precision::kInt8 ? "int8" : "bf16",
               manifest.parameter_storage == audit::ParameterStorage::kF32 ? "f32" : "bf16");
  absl::PrintF("topology    %d replicas x %d shards, micro-batches of %d windows\n",
               manifest.topology.replicas, manifest.topology.shards, manifest.topology.micro_batch);
  absl::PrintF("corpus      %s\ntokenizer   %s\n", manifest.corpus.ToHex(),
               manifest.tokenizer.ToHex());
  if (records.empty()) {
    absl::PrintF("steps       none yet\n");
  } else {
    const audit::StepRecord& last = records.back();
    absl::PrintF("steps       %d to %d, %d tokens, last loss %.4f\nchain       %s\n",
                 records.front().step, last.step, last.tokens_before + last.tokens, last.loss,
                 chain);
  }
  absl::PrintF(
      "checkpoints %d%s\n", checkpoints.size(),
      checkpoints.empty() ? "" : absl::StrCat(", the last before step ", checkpoints.back()));
  return absl::OkStatus();
}

}  // namespace

void AddRunCommands(CLI::App& app, Action* chosen) {
  CLI::App* run = app.add_subcommand("run", "runs: begun, looked at, compared");
  run->require_subcommand(1);

  auto init_args = std::make_shared<InitArgs>();
  CLI::App* init = run->add_subcommand(
      "init",
      "Resolves a run.toml into the manifest that fixes a run, in a new folder.\n"
      "What run.toml may say: docs/run_manifest.md. Example:\n"
      "  lockstep run init --example tiny > run.toml\n"
      "  lockstep run init run.toml --out runs/first");
  init->add_option("config", init_args->config, "the run.toml");
  init->add_option("--out", init_args->out, "folder of the run, new or empty");
  init->add_option("--example", init_args->example,
                   "print a run.toml of this preset: golden, tiny, small or open-1b");
  init->add_flag("--json", init_args->json, "print JSON");
  init->callback([init_args, chosen] { *chosen = [init_args] { return RunInit(*init_args); }; });

  auto inspect_args = std::make_shared<InspectArgs>();
  CLI::App* inspect = run->add_subcommand("inspect", "What a run is and how far it has come.");
  inspect->add_option("folder", inspect_args->folder, "folder of the run")->required();
  inspect->add_flag("--json", inspect_args->json, "print JSON");
  inspect->callback(
      [inspect_args, chosen] { *chosen = [inspect_args] { return RunInspect(*inspect_args); }; });
  AddRunDiffCommands(*run, chosen);
}

}  // namespace lockstep::cli
