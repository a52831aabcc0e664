// SPDX-License-Identifier: Apache-2.0
//
// `lockstep corpus`: ingest here, what works on ingested documents in corpus_stream_commands.cc.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/threads.h"
#include "engine/corpus/corpus_config.h"
#include "engine/corpus/document_store.h"
#include "engine/corpus/ingest.h"
#include "engine/corpus/input_files.h"

namespace lockstep::cli {
namespace {

struct IngestArguments {
  std::string config;
  std::string out;
  std::vector<std::string> sources;
  int threads = 0;
  bool json = false;
};

// The sources that were asked for, in the configuration's order.
absl::StatusOr<std::vector<engine::SourceConfig>> Chosen(const engine::CorpusConfig& config,
                                                         const IngestArguments& arguments) {
  std::vector<std::string> known;
  std::vector<engine::SourceConfig> chosen;
  for (const engine::SourceConfig& source : config.sources) {
    known.push_back(source.name);
    if (arguments.sources.empty() || std::find(arguments.sources.begin(), arguments.sources.end(),
                                               source.name) != arguments.sources.end()) {
      chosen.push_back(source);
    }
  }
  for (const std::string& name : arguments.sources) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.config, ": expected --source to be one of ",
                     absl::StrJoin(known, ", "), "; found \"", name, "\""));
  }
  return chosen;
}

absl::Status IngestOne(const engine::SourceConfig& source, const engine::InputFiles& inputs,
                       const IngestArguments& arguments) {
  const std::string folder = absl::StrCat(arguments.out, "/", source.name);
  Progress progress(absl::StrCat("ingest ", source.name), inputs.bytes, "B", arguments.json);
  int64_t skipped = 0;
  int64_t read = 0;
  const engine::IngestHooks hooks = {.interrupted = Interrupted,
                                     .progress =
                                         [&](int64_t bytes_before, int64_t bytes_read) {
                                           progress.Skip(bytes_before - skipped);
                                           skipped = bytes_before;
                                           progress.Add(bytes_read - read);
                                           read = bytes_read;
                                         },
                                     .durable = {}};
  engine::IngestOptions options;
  options.threads = arguments.threads > 0 ? arguments.threads : DefaultThreads();
  const bool finished_before = engine::DocumentStore::Open(folder).ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::IngestReport report,
                            engine::IngestSource(source, inputs, folder, options, hooks));
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::DocumentStore store, engine::DocumentStore::Open(folder));
  if (arguments.json) {
    nlohmann::json json = report.ToJson();
    json["folder"] = folder;
    json["finished_before"] = finished_before;
    json["documents"] = store.documents();
    json["text_bytes"] = store.text_bytes();
    json["parts"] = store.parts();
    json["manifest"] = store.digest().ToHex();
    return PrintJson(json);
  }
  return Print(absl::StrCat(
      report.ToTable(), "  ", folder, ": ", store.documents(), " documents in ", store.parts(),
      " parts, manifest ", store.digest().ToHex(), "\n",
      finished_before ? "  (finished by an earlier run; the files were not read again)\n" : ""));
}

absl::Status Ingest(const IngestArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::CorpusConfig config,
                            engine::LoadCorpusConfig(arguments.config));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<engine::SourceConfig> sources,
                            Chosen(config, arguments));
  // A path that is wrong is better found before hours of work on another source.
  std::vector<engine::InputFiles> inputs;
  for (const engine::SourceConfig& source : sources) {
    LOCKSTEP_ASSIGN_OR_RETURN(inputs.emplace_back(), engine::ListInputFiles(source),
                              arguments.config);
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(IngestOne(sources[i], inputs[i], arguments));
  }
  return absl::OkStatus();
}

}  // namespace

void AddCorpusCommands(CLI::App& app, Action* chosen) {
  CLI::App* corpus =
      app.add_subcommand("corpus", "documents, token shards, and the stream of training windows");
  corpus->require_subcommand(1);
  CLI::App* ingest = corpus->add_subcommand("ingest",
                                            "Reads the sources of a corpus.toml, filters their "
                                            "documents, and writes them to OUT/SOURCE.\n"
                                            "A run that was stopped goes on where it was; the same "
                                            "bytes come out for any number of threads.\n"
                                            "What corpus.toml may say: docs/corpus_format.md.");
  auto arguments = std::make_shared<IngestArguments>();
  ingest->add_option("config", arguments->config, "the corpus.toml")->required();
  ingest->add_option("--out", arguments->out, "folder to write to; each source has a folder in it")
      ->required();
  ingest->add_option("--source", arguments->sources, "only these sources");
  ingest
      ->add_option("--threads", arguments->threads,
                   "threads; as many as there are CPUs if not given")
      ->check(CLI::Range(1, 1024));
  ingest->add_flag("--json", arguments->json, "the report of each source as one line of JSON");
  ingest->callback([arguments, chosen] { *chosen = [arguments] { return Ingest(*arguments); }; });
  AddCorpusShardCommands(*corpus, chosen);
  AddCorpusStreamCommands(*corpus, chosen);
}

}  // namespace lockstep::cli
