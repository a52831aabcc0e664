// SPDX-License-Identifier: Apache-2.0
//
// `lockstep corpus build | verify | trace | fetch-plan | cursor`: shards, and the stream over them.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/bytes.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "engine/data/build.h"
#include "engine/data/fetch_plan.h"
#include "engine/data/schedule.h"
#include "engine/data/stream.h"
#include "engine/data/verify.h"

namespace lockstep::cli {
namespace {

using engine::BatchSchedule;
using engine::CorpusManifest;
using engine::CorpusReader;
using engine::ShardFile;
using engine::SourceEntry;
using engine::StepWindows;
using engine::Stream;
using engine::TokenSpan;
using Json = nlohmann::json;

constexpr size_t kCursorBytesMax = 1 << 20;

void PrintJson(const Json& json) {
  std::puts(json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

int DefaultThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// ---- build

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

void PrintCorpus(const engine::BuildReport& report, bool json) {
  if (json) {
    Json sources = Json::array();
    for (const SourceEntry& source : report.manifest.sources) {
      sources.push_back(SourceSummary(source));
    }
    PrintJson({{"manifest", report.digest.ToHex()},
               {"was_there", report.was_there},
               {"sources", std::move(sources)}});
    return;
  }
  std::printf("%-20s %14s %12s %8s %10s\n", "source", "tokens", "documents", "shards", "mean");
  for (const SourceEntry& source : report.manifest.sources) {
    const uint64_t mean = source.documents == 0 ? 0 : source.tokens / source.documents;
    absl::PrintF("%-20s %14d %12d %8d %10d\n", source.name, source.tokens, source.documents,
                 source.shards.size(), mean);
  }
  absl::PrintF("manifest %s%s\n", report.digest.ToHex(),
               report.was_there ? " (was there already)" : "");
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
  PrintCorpus(report, args.json);
  return absl::OkStatus();
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
  build->add_option("--threads", args->threads, "threads")->capture_default_str();
  build->add_flag("--json", args->json, "print JSON");
  build->callback([args, chosen] { *chosen = [args] { return RunBuild(*args); }; });
}

// ---- verify

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
    PrintJson({{"manifest", report.manifest.ToHex()},
               {"files", report.files},
               {"bytes", report.bytes},
               {"chunks", report.chunks},
               {"documents", report.documents},
               {"tokens", report.tokens}});
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
  verify->add_option("--threads", args->threads, "threads")->capture_default_str();
  verify->add_flag("--json", args->json, "print JSON");
  verify->callback([args, chosen] { *chosen = [args] { return RunVerify(*args); }; });
}

// ---- the stream

struct StreamArgs {
  std::string folder;
  uint64_t seed = 42;
  uint64_t seq_len = 4096;
  std::string batch = "768@4000000000,1152@360000000000,2304@400000000000";
  std::string cursor;
  bool json = false;
};

void AddStreamOptions(CLI::App& command, StreamArgs& args) {
  command.add_option("folder", args.folder, "folder of the corpus")->required();
  command.add_option("--seed", args.seed, "seed of the run")->capture_default_str();
  command.add_option("--seq-len", args.seq_len, "sequence length")->capture_default_str();
  command
      .add_option("--batch", args.batch,
                  "windows a step, in phases: WINDOWS@TOKENS,...,WINDOWS[@TOKENS]")
      ->capture_default_str();
  command.add_option(
      "--cursor", args.cursor,
      "cursor file of an earlier step, to walk from there and not from the beginning");
  command.add_flag("--json", args.json, "print JSON");
}

struct OpenStream {
  BatchSchedule schedule;
  Stream stream;
};

absl::StatusOr<OpenStream> Open(const StreamArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<engine::BatchPhase> phases,
                            engine::ParseBatchPhases(args.batch));
  LOCKSTEP_ASSIGN_OR_RETURN(BatchSchedule schedule,
                            BatchSchedule::Create(std::move(phases), args.seq_len));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const CorpusReader> corpus,
                            CorpusReader::OpenFolder(args.folder));
  LOCKSTEP_ASSIGN_OR_RETURN(Stream stream,
                            Stream::Open(std::move(corpus), args.seed, args.seq_len));
  if (!args.cursor.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(args.cursor, kCursorBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(const engine::StreamCursor cursor,
                              engine::DecodeCursor(AsBytes(bytes)), args.cursor);
    LOCKSTEP_RETURN_IF_ERROR(stream.Seek(cursor), args.cursor);
  }
  return OpenStream{std::move(schedule), std::move(stream)};
}

absl::Status Walk(Stream& stream, uint64_t window, bool quiet) {
  const uint64_t from = stream.window();
  Progress progress("walking", static_cast<int64_t>(window > from ? window - from : 0), "windows",
                    quiet);
  return engine::WalkTo(
      stream, window, [&](int64_t count) { progress.Add(count); }, Interrupted);
}

// Names of documents, a shard at a time.
class DocumentNames {
 public:
  explicit DocumentNames(const CorpusReader& corpus) : corpus_(corpus) {}
  absl::StatusOr<std::string> NameOf(const TokenSpan& span) {
    const std::pair<uint32_t, uint32_t> key = {span.source, span.shard};
    auto at = names_.find(key);
    if (at == names_.end()) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::vector<std::string> names,
                                corpus_.ReadNames(span.source, span.shard));
      at = names_.emplace(key, std::move(names)).first;
    }
    return at->second[span.document];
  }

 private:
  const CorpusReader& corpus_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::string>> names_;
};

// A name as one line of a terminal: what could move the cursor or colour the screen is escaped.
std::string Printable(const std::string& name) {
  const std::string quoted = Json(name).dump(-1, ' ', true, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

struct TraceArgs : StreamArgs {
  uint64_t step = 0;
  uint64_t ranks = 0;  // 0: not asked
};

absl::Status RunTrace(const TraceArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(OpenStream open, Open(args));
  LOCKSTEP_ASSIGN_OR_RETURN(const StepWindows step, open.schedule.WindowsOfStep(args.step));
  LOCKSTEP_RETURN_IF_ERROR(Walk(open.stream, step.begin, args.json));
  const CorpusReader& corpus = open.stream.corpus();
  DocumentNames names(corpus);
  Json windows = Json::array();
  if (!args.json) {
    absl::PrintF(
        "step %d: windows %d to %d, %d tokens consumed before\n%10s %5s %-28s %9s %19s  %s\n",
        args.step, step.begin, step.end - 1, step.tokens_before, "window", "rank", "shard",
        "document", "tokens", "name");
  }
  std::vector<TokenSpan> spans;
  for (uint64_t window = step.begin; window < step.end; ++window) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    LOCKSTEP_RETURN_IF_ERROR(open.stream.Next(&spans));
    const std::string rank =
        args.ranks == 0 ? "" : absl::StrCat(engine::RankOfWindow(step, window, args.ranks));
    Json json_spans = Json::array();
    for (const TokenSpan& span : spans) {
      const std::string& source = corpus.manifest().sources[span.source].name;
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string name, names.NameOf(span));
      if (args.json) {
        json_spans.push_back({{"source", source},
                              {"shard", span.shard},
                              {"document", span.document},
                              {"name", name},
                              {"begin", span.begin},
                              {"end", span.end},
                              {"shard_begin", span.shard_begin}});
      } else {
        absl::PrintF("%10d %5s %-28s %9d %9d-%-9d  %s\n", window, rank,
                     engine::ShardFileName(source, span.shard, ShardFile::kTokens), span.document,
                     span.begin, span.end, Printable(name));
      }
    }
    if (!args.json) continue;
    windows.push_back({{"window", window}, {"spans", std::move(json_spans)}});
    if (args.ranks > 0) {
      windows.back()["rank"] = engine::RankOfWindow(step, window, args.ranks);
    }
  }
  if (args.json) {
    PrintJson({{"step", args.step},
               {"tokens_before", step.tokens_before},
               {"windows", std::move(windows)}});
  }
  return absl::OkStatus();
}

void AddTrace(CLI::App& corpus, Action* chosen) {
  const auto args = std::make_shared<TraceArgs>();
  CLI::App* trace = corpus.add_subcommand(
      "trace", "Name the documents, and their tokens, behind each window of a training step.");
  AddStreamOptions(*trace, *args);
  trace->add_option("--step", args->step, "the step, counted from 0")->required();
  trace->add_option("--ranks", args->ranks,
                    "also show which of this many logical ranks owns a window");
  trace->callback([args, chosen] { *chosen = [args] { return RunTrace(*args); }; });
}

struct PlanArgs : StreamArgs {
  std::string steps;
};

// "a..b", both included, or "a".
absl::StatusOr<std::pair<uint64_t, uint64_t>> ParseSteps(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, "..");
  uint64_t first = 0, last = 0;
  if (parts.size() > 2 || !absl::SimpleAtoi(parts.front(), &first) ||
      !absl::SimpleAtoi(parts.back(), &last) || last < first) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps: expected FIRST..LAST, both included, found \"", text, "\""));
  }
  return std::pair(first, last);
}

Json PlanToJson(const engine::FetchPlan& plan, const CorpusReader& corpus) {
  Json files = Json::array();
  for (const engine::FileRanges& file : plan.files) {
    const engine::FileEntry& entry =
        corpus.manifest().sources[file.id.source].shards[file.id.shard].file(file.id.file);
    Json ranges = Json::array();
    for (const engine::ByteRange& range : file.ranges) {
      ranges.push_back(Json::array({range.begin, range.end}));
    }
    files.push_back({{"file", engine::NameOf(corpus.manifest(), file.id)},
                     {"size", entry.bytes},
                     {"sha256", entry.sha256.ToHex()},
                     {"ranges", std::move(ranges)}});
  }
  return {
      {"manifest", corpus.digest().ToHex()}, {"bytes", plan.bytes}, {"files", std::move(files)}};
}

absl::Status RunPlan(const PlanArgs& args) {
  using Steps = std::pair<uint64_t, uint64_t>;
  LOCKSTEP_ASSIGN_OR_RETURN(const Steps steps, ParseSteps(args.steps));
  LOCKSTEP_ASSIGN_OR_RETURN(OpenStream open, Open(args));
  LOCKSTEP_ASSIGN_OR_RETURN(const StepWindows first, open.schedule.WindowsOfStep(steps.first));
  LOCKSTEP_ASSIGN_OR_RETURN(const StepWindows last, open.schedule.WindowsOfStep(steps.second));
  LOCKSTEP_RETURN_IF_ERROR(Walk(open.stream, first.begin, args.json));
  const CorpusReader& corpus = open.stream.corpus();
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::FetchPlan plan,
                            engine::PlanFetch(corpus, args.seed, args.seq_len, open.stream.cursor(),
                                              last.end - first.begin, Interrupted));
  if (args.json) {
    Json json = PlanToJson(plan, corpus);
    json["steps"] = Json::array({steps.first, steps.second});
    json["windows"] = Json::array({first.begin, last.end});
    json["cursor"] = HexEncode(AsBytes(engine::EncodeCursor(open.stream.cursor())));
    PrintJson(json);
    return absl::OkStatus();
  }
  absl::PrintF("steps %d to %d: windows %d to %d\n%-36s %8s %14s %14s\n", steps.first, steps.second,
               first.begin, last.end - 1, "file", "ranges", "bytes", "of");
  for (const engine::FileRanges& file : plan.files) {
    uint64_t bytes = 0;
    for (const engine::ByteRange& range : file.ranges) bytes += range.end - range.begin;
    absl::PrintF(
        "%-36s %8d %14d %14d\n", engine::NameOf(corpus.manifest(), file.id), file.ranges.size(),
        bytes,
        corpus.manifest().sources[file.id.source].shards[file.id.shard].file(file.id.file).bytes);
  }
  absl::PrintF("%d bytes of %d\n", plan.bytes, engine::CorpusBytes(corpus.manifest()));
  return absl::OkStatus();
}

void AddPlan(CLI::App& corpus, Action* chosen) {
  const auto args = std::make_shared<PlanArgs>();
  CLI::App* plan = corpus.add_subcommand(
      "fetch-plan", "List the byte ranges of the corpus's files that a replay of steps reads.");
  AddStreamOptions(*plan, *args);
  plan->add_option("--steps", args->steps, "FIRST..LAST, both included")->required();
  plan->callback([args, chosen] { *chosen = [args] { return RunPlan(*args); }; });
}

struct CursorArgs : StreamArgs {
  uint64_t step = 0;
  std::string out;
};

absl::Status RunCursor(const CursorArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(OpenStream open, Open(args));
  LOCKSTEP_ASSIGN_OR_RETURN(const StepWindows step, open.schedule.WindowsOfStep(args.step));
  LOCKSTEP_RETURN_IF_ERROR(Walk(open.stream, step.begin, args.json));
  const engine::StreamCursor& cursor = open.stream.cursor();
  const std::string bytes = engine::EncodeCursor(cursor);
  if (!args.out.empty()) LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(args.out, AsBytes(bytes)));
  const std::vector<SourceEntry>& sources = open.stream.corpus().manifest().sources;
  if (args.json) {
    Json positions = Json::array();
    for (size_t i = 0; i < sources.size(); ++i) {
      positions.push_back({{"source", sources[i].name},
                           {"epoch", cursor.sources[i].epoch},
                           {"documents", cursor.sources[i].documents}});
    }
    PrintJson({{"step", args.step},
               {"window", cursor.window},
               {"draws", cursor.draws},
               {"sources", std::move(positions)},
               {"cursor", HexEncode(AsBytes(bytes))},
               {"digest", engine::CursorDigest(cursor).ToHex()}});
    return absl::OkStatus();
  }
  absl::PrintF("step %d: window %d, %d documents drawn\n", args.step, cursor.window, cursor.draws);
  for (size_t i = 0; i < sources.size(); ++i) {
    absl::PrintF("%-20s epoch %d, %d of %d documents\n", sources[i].name, cursor.sources[i].epoch,
                 cursor.sources[i].documents, sources[i].documents);
  }
  absl::PrintF("cursor %s\n", engine::CursorDigest(cursor).ToHex());
  return absl::OkStatus();
}

void AddCursor(CLI::App& corpus, Action* chosen) {
  const auto args = std::make_shared<CursorArgs>();
  CLI::App* cursor = corpus.add_subcommand(
      "cursor", "Show, and with --out write, the stream's cursor before a step.");
  AddStreamOptions(*cursor, *args);
  cursor->add_option("--step", args->step, "the step, counted from 0")->required();
  cursor->add_option("--out", args->out, "file for the cursor, to be given to --cursor");
  cursor->callback([args, chosen] { *chosen = [args] { return RunCursor(*args); }; });
}

}  // namespace

void AddCorpusStreamCommands(CLI::App& corpus, Action* chosen) {
  AddBuild(corpus, chosen);
  AddVerify(corpus, chosen);
  AddTrace(corpus, chosen);
  AddPlan(corpus, chosen);
  AddCursor(corpus, chosen);
}

}  // namespace lockstep::cli
