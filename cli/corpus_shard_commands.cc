// SPDX-License-Identifier: Apache-2.0
//
// `lockstep corpus build | verify`: token shards and their manifest.
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/threads.h"
#include "engine/data/build.h"
#include "engine/data/shard_reader.h"
#include "engine/data/verify.h"

namespace lockstep::cli {
namespace {

using engine::CorpusManifest;
using engine::SourceEntry;
using Json = nlohmann::json;

struct BuildArgs {
  std::string tokenizer;
  std::vector<std::string> stores;
  std::vector<std::string> shares;
  engine::BuildOptions options;
  int threads = DefaultThreads();
  bool json = false;
};

absl::Status ParseShares(const std::vector<std::string>& texts,
                         std::map<std::string, uint64_t>* shares) {
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    uint64_t share = 0;
    if (!absl::SimpleAtoi(parts.second, &share) || !shares->emplace(parts.first, share).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--share: expected NAME=NUMBER, each name once, found \"", text, "\""));
    }
  }
  return absl::OkStatus();
}

Json SourceSummary(const SourceEntry& source) {
  return {{"name", source.name},
          {"licence", source.licence},
          {"tokens", source.tokens},
          {"documents", source.documents},
          {"share", source.share},
          {"shards", source.shards.size()},
          {"text_bytes", source.text_bytes}};
}

absl::Status PrintCorpus(const engine::BuildReport& report, bool json) {
  if (json) {
    Json sources = Json::array();
    for (const SourceEntry& source : report.manifest.sources) {
      sources.push_back(SourceSummary(source));
    }
    LOCKSTEP_RETURN_IF_ERROR(PrintJson({{"manifest", report.digest.ToHex()},
                                        {"was_there", report.was_there},
                                        {"sources", std::move(sources)}}));
    return absl::OkStatus();
  }
  std::printf("%-20s %14s %12s %8s %10s\n", "source", "tokens", "documents", "shards", "mean");
  for (const SourceEntry& source : report.manifest.sources) {
    const uint64_t mean = source.documents == 0 ? 0 : source.tokens / source.documents;
    absl::PrintF("%-20s %14d %12d %8d %10d\n", source.name, source.tokens, source.documents,
                 source.shards.size(), mean);
  }
  absl::PrintF("manifest %s%s\n", report.digest.ToHex(),
               report.was_there ? " (was there already)" : "");
  return absl::OkStatus();
}

absl::Status RunBuild(BuildArgs& args) {
  LOCKSTEP_RETURN_IF_ERROR(ParseShares(args.shares, &args.options.shares));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const engine::Tokenizer> tokenizer,
                            engine::Tokenizer::Load(args.tokenizer));
  std::vector<engine::BuildSource> sources;
  int64_t bytes = 0;
  for (const std::string& folder : args.stores) {
    LOCKSTEP_ASSIGN_OR_RETURN(engine::DocumentStore store, engine::DocumentStore::Open(folder));
    bytes += store.text_bytes();
    sources.push_back(engine::SourceOf(std::move(store)));
  }
  ThreadPool pool(args.threads);
  Progress progress("building", bytes, "B", args.json);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const engine::BuildReport report,
      engine::BuildCorpus(engine::TokenizerOf(std::move(tokenizer)), std::move(sources),
                          args.options, pool,
                          {.progress = [&](int64_t count) { progress.Add(count); },
                           .resumed = [&](int64_t count) { progress.Skip(count); },
                           .interrupted = Interrupted}));
  return PrintCorpus(report, args.json);
}

void AddBuild(CLI::App& corpus, Action* chosen) {
  const auto args = std::make_shared<BuildArgs>();
  CLI::App* build = corpus.add_subcommand(
      "build",
      "Turn ingested documents into token shards and a manifest. Resumes where it was stopped.");
  build->add_option("--tokenizer", args->tokenizer, "tokenizer file")->required();
  build->add_option("--stores", args->stores, "folders that `lockstep corpus ingest` wrote")
      ->required();
  build->add_option("--out", args->options.out, "folder of the corpus")->required();
  build->add_option("--shard-tokens", args->options.shard_tokens, "tokens a shard")
      ->capture_default_str();
  build
      ->add_option("--chunk-bytes", args->options.chunk_bytes,
                   "bytes a chunk, the unit of verification: a power of two")
      ->capture_default_str();
  build->add_option(
      "--share", args->shares,
      "NAME=N: token share of a source in the mix, relative to the others' (default: its tokens)");
  build->add_option("--threads", args->threads, "threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  build->add_flag("--json", args->json, "print JSON");
  build->callback([args, chosen] { *chosen = [args] { return RunBuild(*args); }; });
}

struct VerifyArgs {
  std::string folder;
  std::string manifest;
  int threads = DefaultThreads();
  bool json = false;
};

absl::Status RunVerify(const VerifyArgs& args) {
  std::optional<Digest> expected;
  if (!args.manifest.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(expected, Digest::FromHex(args.manifest), "--manifest");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const CorpusManifest manifest, engine::ReadCorpusManifest(args.folder));
  ThreadPool pool(args.threads);
  Progress progress("verifying", static_cast<int64_t>(engine::CorpusBytes(manifest)), "B",
                    args.json);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const engine::VerifyReport report,
      engine::VerifyCorpus(
          args.folder, expected, pool,
          {.progress = [&](int64_t count) { progress.Add(count); }, .interrupted = Interrupted}));
  if (args.json) {
    LOCKSTEP_RETURN_IF_ERROR(PrintJson({{"manifest", report.manifest.ToHex()},
                                        {"files", report.files},
                                        {"bytes", report.bytes},
                                        {"chunks", report.chunks},
                                        {"documents", report.documents},
                                        {"tokens", report.tokens}}));
  } else {
    absl::PrintF("good: %d files, %d bytes, %d chunks, %d documents, %d tokens\nmanifest %s\n",
                 report.files, report.bytes, report.chunks, report.documents, report.tokens,
                 report.manifest.ToHex());
  }
  return absl::OkStatus();
}

void AddVerify(CLI::App& corpus, Action* chosen) {
  const auto args = std::make_shared<VerifyArgs>();
  CLI::App* verify = corpus.add_subcommand(
      "verify", "Recheck every file of a corpus; names the first chunk that is bad.");
  verify->add_option("folder", args->folder, "folder of the corpus")->required();
  verify->add_option("--manifest", args->manifest, "the digest that the manifest must have");
  verify->add_option("--threads", args->threads, "threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verify->add_flag("--json", args->json, "print JSON");
  verify->callback([args, chosen] { *chosen = [args] { return RunVerify(*args); }; });
}

}  // namespace

void AddCorpusShardCommands(CLI::App& corpus, Action* chosen) {
  AddBuild(corpus, chosen);
  AddVerify(corpus, chosen);
}

}  // namespace lockstep::cli
