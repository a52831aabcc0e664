// SPDX-License-Identifier: Apache-2.0
//
// `lockstep tokenizer train | import | export`: tokenizer files made and passed on. What works with
// one is in tokenizer_text_commands.cc.
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/threads.h"
#include "engine/tokenizer/formats.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/train.h"

namespace lockstep::cli {
namespace {

using engine::Tokenizer;
using engine::Vocabulary;

constexpr const char* kJsonHelp = "print JSON, draw no progress";
constexpr const char* kSpecialHelp =
    "names of the special tokens; the first one is the end of text";

std::vector<std::string> DefaultSpecial() { return {std::string(engine::kEndOfTextName)}; }

// Writes the tokenizer file and says what it holds.
absl::Status WriteTokenizer(const Vocabulary& v, const std::string& out, bool json) {
  const std::string bytes = engine::SerializeVocabulary(v);
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(out, AsBytes(bytes)));
  const std::string digest = Sha256(AsBytes(bytes)).ToHex();
  if (json) {
    return PrintJson({{"file", out},
                      {"digest", digest},
                      {"entries", v.size()},
                      {"special_tokens", v.special_tokens},
                      {"end_of_text", v.end_of_text}});
  }
  return Print(absl::StrCat(out, ": ", v.size(), " entries, ", v.special_tokens.size(),
                            " of them special, sha256 ", digest, "\n"));
}

// ---- train

struct TrainArgs {
  std::vector<std::string> from;
  int64_t vocab = 0;
  std::vector<std::string> special = DefaultSpecial();
  std::string out;
  int threads = DefaultThreads();
  bool json = false;
};

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<std::unique_ptr<engine::TextSource>> OpenSources(
    const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<engine::TextSource>> sources;
  for (const std::string& path : paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        auto source, IsFolder(path) ? engine::OpenDocuments(path) : engine::OpenTextFile(path));
    sources.push_back(std::move(source));
  }
  return engine::JoinSources(std::move(sources));
}

// Two lines of progress: counting, then learning, which begins when counting is over.
class TrainProgress {
 public:
  TrainProgress(int64_t bytes, int64_t merges, bool quiet) : merges_(merges), quiet_(quiet) {
    counting_.emplace("counting", bytes, "B", quiet);
  }
  void Count(int64_t bytes) { counting_->Add(bytes); }
  void Learn(int64_t merges) {
    if (!learning_) {
      counting_.reset();
      learning_.emplace("learning", merges_, "merges", quiet_);
    }
    learning_->Add(merges);
  }

 private:
  const int64_t merges_;
  const bool quiet_;
  std::optional<Progress> counting_;
  std::optional<Progress> learning_;
};

absl::Status RunTrain(const TrainArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto source, OpenSources(args.from));
  ThreadPool pool(args.threads);
  absl::StatusOr<Vocabulary> vocabulary;
  {
    const int64_t merges = args.vocab - 256 - static_cast<int64_t>(args.special.size());
    TrainProgress progress(source->bytes(), merges, args.json);
    vocabulary =
        engine::TrainVocabulary(*source, args.vocab, args.special, pool,
                                {.interrupted = Interrupted,
                                 .bytes_counted = [&](int64_t bytes) { progress.Count(bytes); },
                                 .merges_made = [&](int64_t learnt) { progress.Learn(learnt); }});
  }
  LOCKSTEP_RETURN_IF_ERROR(vocabulary.status());
  if (vocabulary->size() < args.vocab) {
    std::fprintf(stderr,
                 "the text has no more pairs that come twice: %lld entries instead of %lld\n",
                 static_cast<long long>(vocabulary->size()), static_cast<long long>(args.vocab));
  }
  return WriteTokenizer(*vocabulary, args.out, args.json);
}

void AddTrain(CLI::App& group, Action* chosen) {
  const auto args = std::make_shared<TrainArgs>();
  CLI::App* train = group.add_subcommand(
      "train",
      "Learn a tokenizer from text. The same text gives the same file, whatever the threads.\n"
      "Nothing is written before it is complete.");
  train
      ->add_option("--from", args->from,
                   "text files, each one text, or folders that `corpus ingest` wrote")
      ->required();
  train
      ->add_option("--vocab", args->vocab,
                   "entries in all: the 256 bytes, merges, and the special tokens")
      ->required()
      ->check(CLI::Range(int64_t{257}, engine::kVocabularyMax));
  train->add_option("--special", args->special, kSpecialHelp)->capture_default_str();
  train->add_option("--out", args->out, "tokenizer file to write")->required();
  train->add_option("--threads", args->threads, "threads")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  train->add_flag("--json", args->json, kJsonHelp);
  train->footer(
      "Example:\n"
      "  lockstep tokenizer train --from corpus/ingested/* --vocab 16384 --out my.tokenizer");
  train->callback([args, chosen] { *chosen = [args] { return RunTrain(*args); }; });
}

// ---- import and export

CLI::Option* AddFormat(CLI::App* app, std::string* format) {
  return app
      ->add_option(
          "--format", *format,
          "huggingface: a tokenizer.json; tiktoken: a file of ranks, \"BASE64 RANK\" lines")
      ->required()
      ->check(CLI::IsMember({"huggingface", "tiktoken"}));
}

struct ImportArgs {
  std::string format;
  std::string file;
  std::vector<std::string> special = DefaultSpecial();
  std::string end_of_text = std::string(engine::kEndOfTextName);
  std::string out;
  bool json = false;
};

absl::Status RunImport(const ImportArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadFile(args.file, engine::kTokenizerFileBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const Vocabulary v,
                            args.format == "tiktoken"
                                ? engine::ImportTiktoken(bytes, args.special)
                                : engine::ImportHuggingFace(bytes, args.end_of_text),
                            args.file);
  return WriteTokenizer(v, args.out, args.json);
}

void AddImport(CLI::App& group, Action* chosen) {
  const auto args = std::make_shared<ImportArgs>();
  CLI::App* import = group.add_subcommand(
      "import",
      "Take over a tokenizer of another tool. One that would give other ids here is refused, with\n"
      "the reason. What is accepted: docs/tokenizer.md.");
  AddFormat(import, &args->format);
  import->add_option("FILE", args->file, "the tokenizer.json or the file of ranks")->required();
  import->add_option("--special", args->special, absl::StrCat("tiktoken: ", kSpecialHelp))
      ->capture_default_str();
  import
      ->add_option("--end-of-text", args->end_of_text,
                   "huggingface: which added token is the end of text; added if it is missing")
      ->capture_default_str();
  import->add_option("--out", args->out, "tokenizer file to write")->required();
  import->add_flag("--json", args->json, kJsonHelp);
  import->callback([args, chosen] { *chosen = [args] { return RunImport(*args);
};
}  // namespace
);
}  // namespace lockstep::cli

struct ExportArgs {
  std::string tokenizer;
  std::string format;
  std::string out;
  bool json = false;
};

absl::Status RunExport(const ExportArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(args.tokenizer));
  std::string bytes;
  if (args.format == "tiktoken") {
    bytes = engine::ExportTiktoken(tokenizer->vocabulary());
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(bytes, engine::ExportHuggingFace(*tokenizer), args.tokenizer);
  }
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(args.out, AsBytes(bytes)));
  if (args.json) {
    return PrintJson({{"file", args.out},
                      {"format", args.format},
                      {"bytes", bytes.size()},
                      {"digest", Sha256(AsBytes(bytes)).ToHex()}});
  }
  return Print(absl::StrCat(args.out, ": ", bytes.size(), " bytes\n"));
}

void AddExport(CLI::App& group, Action* chosen) {
  const auto args = std::make_shared<ExportArgs>();
  CLI::App* export_app = group.add_subcommand(
      "export",
      "Write a tokenizer for another tool, which then gives the same ids. A file of ranks holds\n"
      "neither the pattern nor the special tokens: docs/tokenizer.md says what to give that tool.");
  export_app->add_option("--tokenizer", args->tokenizer, "tokenizer file")->required();
  AddFormat(export_app, &args->format);
  export_app->add_option("--out", args->out, "file to write")->required();
  export_app->add_flag("--json", args->json, kJsonHelp);
  export_app->callback([args, chosen] { *chosen = [args] { return RunExport(*args); }; });
}

}  // namespace

void AddTokenizerCommands(CLI::App& app, Action* chosen) {
  CLI::App* group = app.add_subcommand("tokenizer",
                                       "Text to token ids and back: byte-level byte-pair encoding. "
                                       "What it does: docs/tokenizer.md.");
  group->require_subcommand(1);
  AddTrain(*group, chosen);
  AddTokenizerTextCommands(*group, chosen);
  AddImport(*group, chosen);
  AddExport(*group, chosen);
}

}  // namespace lockstep::cli
