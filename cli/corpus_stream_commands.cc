// SPDX-License-Identifier: Apache-2.0
//
// `lockstep corpus build | verify | trace | fetch-plan | fetch | cursor`: shards, and the stream
// over them.
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/bytes.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "engine/data/fetch_plan.h"
#include "engine/data/open_corpus.h"
#include "engine/data/schedule.h"
#include "engine/data/step_reader.h"
#include "engine/data/stream.h"
#include "engine/data/verify.h"

namespace lockstep::cli {
namespace {

using engine::BatchSchedule;
using engine::CorpusReader;
using engine::ShardFile;
using engine::SourceEntry;
using engine::Step;
using engine::StepReader;
using engine::StepWindows;
using engine::TokenSpan;
using Json = nlohmann::json;

constexpr size_t kCursorBytesMax = 1 << 20;

struct StreamArgs {
  engine::CorpusLocation location;
  std::string manifest;
  bool by_digest = false;
  uint64_t seed = 42;
  uint64_t seq_len = 4096;
  std::string batch = "768@4000000000,1152@360000000000,2304@400000000000";
  std::string cursor;
  bool json = false;
};

void AddStreamOptions(CLI::App& command, StreamArgs& args) {
  command
      .add_option("corpus", args.location.places,
                  "folder of the corpus, or the address of a web server that has it; several are "
                  "asked in turn")
      ->required();
  command.add_option("--manifest", args.manifest,
                     "the digest that the corpus's manifest must have (needed for an address)");
  command.add_option("--cache", args.location.cache, "folder that keeps what is fetched");
  command.add_flag("--by-digest", args.by_digest,
                   "the servers name files by their SHA-256, not by path");
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

absl::StatusOr<StepReader> Open(const StreamArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<engine::BatchPhase> phases,
                            engine::ParseBatchPhases(args.batch));
  LOCKSTEP_ASSIGN_OR_RETURN(BatchSchedule schedule,
                            BatchSchedule::Create(std::move(phases), args.seq_len));
  engine::CorpusLocation location = args.location;
  if (!args.manifest.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(location.manifest, Digest::FromHex(args.manifest), "--manifest");
  }
  if (args.by_digest) location.names = engine::MirrorNames::kDigests;
  location.http.interrupted = Interrupted;
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const CorpusReader> corpus,
                            engine::OpenCorpus(location));
  LOCKSTEP_ASSIGN_OR_RETURN(StepReader data,
                            StepReader::Open(std::move(corpus), args.seed, std::move(schedule)));
  if (!args.cursor.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(args.cursor, kCursorBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(const engine::StreamCursor cursor,
                              engine::DecodeCursor(AsBytes(bytes)), args.cursor);
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t step, data.schedule().StepOfWindow(cursor.window),
                              args.cursor);
    LOCKSTEP_RETURN_IF_ERROR(data.Resume(step, cursor), args.cursor);
  }
  return data;
}

absl::Status Walk(StepReader& data, uint64_t step, bool quiet) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t to, data.schedule().WindowBefore(step));
  const uint64_t from = data.cursor().window;
  Progress progress("walking", static_cast<int64_t>(to > from ? to - from : 0), "windows", quiet);
  return data.SkipTo(
      step, [&](int64_t count) { progress.Add(count); }, Interrupted);
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
  bool tokens = false;
};

std::string CursorHex(const engine::StreamCursor& cursor) {
  return HexEncode(AsBytes(engine::EncodeCursor(cursor)));
}

absl::StatusOr<Json> WindowToJson(const TraceArgs& args, const StepReader& data, const Step& step,
                                  uint64_t m, DocumentNames& names) {
  Json spans = Json::array();
  for (const TokenSpan& span : step.Trace(m)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string name, names.NameOf(span));
    spans.push_back({{"source", data.corpus().manifest().sources[span.source].name},
                     {"shard", span.shard},
                     {"document", span.document},
                     {"name", name},
                     {"begin", span.begin},
                     {"end", span.end},
                     {"shard_begin", span.shard_begin}});
  }
  const uint64_t window = step.range.begin + m;
  Json json = {{"window", window}, {"spans", std::move(spans)}};
  if (args.ranks > 0) json["rank"] = engine::RankOfWindow(step.range, window, args.ranks);
  if (args.tokens) {
    std::vector<int32_t> tokens(data.window_tokens());
    LOCKSTEP_RETURN_IF_ERROR(data.ReadWindow(step, m, tokens));
    json["tokens"] = std::move(tokens);
  }
  return json;
}

absl::Status PrintWindow(const TraceArgs& args, const StepReader& data, const Step& step,
                         uint64_t m, DocumentNames& names) {
  const uint64_t window = step.range.begin + m;
  const std::string rank =
      args.ranks == 0 ? "" : absl::StrCat(engine::RankOfWindow(step.range, window, args.ranks));
  for (const TokenSpan& span : step.Trace(m)) {
    const std::string& source = data.corpus().manifest().sources[span.source].name;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string name, names.NameOf(span));
    absl::PrintF("%10d %5s %-28s %9d %9d-%-9d  %s\n", window, rank,
                 engine::ShardFileName(source, span.shard, ShardFile::kTokens), span.document,
                 span.begin, span.end, Printable(name));
  }
  if (!args.tokens) return absl::OkStatus();
  std::vector<int32_t> tokens(data.window_tokens());
  LOCKSTEP_RETURN_IF_ERROR(data.ReadWindow(step, m, tokens));
  absl::PrintF("%10d %5s %s\n", window, rank, absl::StrJoin(tokens, " "));
  return absl::OkStatus();
}

absl::Status RunTrace(const TraceArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(StepReader data, Open(args));
  LOCKSTEP_RETURN_IF_ERROR(Walk(data, args.step, args.json));
  LOCKSTEP_ASSIGN_OR_RETURN(const Step step, data.Next());
  DocumentNames names(data.corpus());
  Json windows = Json::array();
  if (!args.json) {
    absl::PrintF(
        "step %d: windows %d to %d, %d tokens consumed before\n%10s %5s %-28s %9s %19s  %s\n",
        step.step, step.range.begin, step.range.end - 1, step.range.tokens_before, "window", "rank",
        "shard", "document", "tokens", "name");
  }
  for (uint64_t m = 0; m < step.windows(); ++m) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    if (args.json) {
      LOCKSTEP_ASSIGN_OR_RETURN(Json window, WindowToJson(args, data, step, m, names));
      windows.push_back(std::move(window));
    } else {
      LOCKSTEP_RETURN_IF_ERROR(PrintWindow(args, data, step, m, names));
    }
  }
  if (args.json) {
    LOCKSTEP_RETURN_IF_ERROR(PrintJson({{"step", step.step},
                                        {"tokens_before", step.range.tokens_before},
                                        {"cursor_before", CursorHex(step.before)},
                                        {"cursor_after", CursorHex(step.after)},
                                        {"windows", std::move(windows)}}));
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
  trace->add_flag("--tokens", args->tokens, "also show the token ids of each window");
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

// A plan, and the stream before its first step.
struct PlannedSteps {
  StepReader data;
  uint64_t first, last;  // steps
  uint64_t begin, end;   // windows
  engine::FetchPlan plan;
};

absl::StatusOr<PlannedSteps> PlanSteps(const StreamArgs& args, const std::string& text) {
  using Steps = std::pair<uint64_t, uint64_t>;
  LOCKSTEP_ASSIGN_OR_RETURN(const Steps steps, ParseSteps(text));
  LOCKSTEP_ASSIGN_OR_RETURN(StepReader data, Open(args));
  LOCKSTEP_ASSIGN_OR_RETURN(const StepWindows last, data.schedule().WindowsOfStep(steps.second));
  LOCKSTEP_RETURN_IF_ERROR(Walk(data, steps.first, args.json));
  const uint64_t begin = data.cursor().window;
  LOCKSTEP_ASSIGN_OR_RETURN(engine::FetchPlan plan,
                            engine::PlanFetch(data.corpus(), args.seed, args.seq_len, data.cursor(),
                                              last.end - begin, Interrupted));
  return PlannedSteps{std::move(data), steps.first, steps.second, begin, last.end, std::move(plan)};
}

absl::Status RunPlan(const PlanArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const PlannedSteps steps, PlanSteps(args, args.steps));
  const CorpusReader& corpus = steps.data.corpus();
  if (args.json) {
    Json json = PlanToJson(steps.plan, corpus);
    json["steps"] = Json::array({steps.first, steps.last});
    json["windows"] = Json::array({steps.begin, steps.end});
    json["cursor"] = CursorHex(steps.data.cursor());
    LOCKSTEP_RETURN_IF_ERROR(PrintJson(json));
    return absl::OkStatus();
  }
  absl::PrintF("steps %d to %d: windows %d to %d\n%-36s %8s %14s %14s\n", steps.first, steps.last,
               steps.begin, steps.end - 1, "file", "ranges", "bytes", "of");
  for (const engine::FileRanges& file : steps.plan.files) {
    uint64_t bytes = 0;
    for (const engine::ByteRange& range : file.ranges) bytes += range.end - range.begin;
    absl::PrintF("%-36s %8d %14d %14d\n", engine::NameOf(corpus.manifest(), file.id),
                 file.ranges.size(), bytes, engine::EntryOf(corpus.manifest(), file.id).bytes);
  }
  absl::PrintF("%d bytes of %d\n", steps.plan.bytes, engine::CorpusBytes(corpus.manifest()));
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

struct FetchArgs : StreamArgs {
  std::string steps;
  int connections = 8;
};

absl::Status RunFetch(const FetchArgs& args) {
  if (args.location.cache.empty()) {
    return absl::InvalidArgumentError("--cache: expected a folder to fetch into");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const PlannedSteps steps, PlanSteps(args, args.steps));
  ThreadPool pool(args.connections);
  {
    Progress progress("fetching", static_cast<int64_t>(steps.plan.bytes), "B", args.json);
    LOCKSTEP_RETURN_IF_ERROR(engine::FetchPlanned(
        steps.data.corpus(), steps.plan, pool,
        {.progress = [&](int64_t count) { progress.Add(count); }, .interrupted = Interrupted}));
  }
  if (args.json) {
    LOCKSTEP_RETURN_IF_ERROR(PrintJson({{"steps", Json::array({steps.first, steps.last})},
                                        {"bytes", steps.plan.bytes},
                                        {"cache", args.location.cache},
                                        {"cursor", CursorHex(steps.data.cursor())}}));
  } else {
    absl::PrintF("steps %d to %d: %d bytes of %d are in %s\n", steps.first, steps.last,
                 steps.plan.bytes, engine::CorpusBytes(steps.data.corpus().manifest()),
                 args.location.cache);
  }
  return absl::OkStatus();
}

void AddFetch(CLI::App& corpus, Action* chosen) {
  const auto args = std::make_shared<FetchArgs>();
  CLI::App* fetch = corpus.add_subcommand(
      "fetch",
      "Fetch what a replay of steps reads, checked, into --cache, a folder that then serves for "
      "these steps in place of the corpus.");
  AddStreamOptions(*fetch, *args);
  fetch->add_option("--steps", args->steps, "FIRST..LAST, both included")->required();
  fetch->add_option("--connections", args->connections, "requests at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  fetch->callback([args, chosen] { *chosen = [args] { return RunFetch(*args); }; });
}

struct CursorArgs : StreamArgs {
  uint64_t step = 0;
  std::string out;
};

absl::Status RunCursor(const CursorArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(StepReader data, Open(args));
  LOCKSTEP_RETURN_IF_ERROR(Walk(data, args.step, args.json));
  const engine::StreamCursor& cursor = data.cursor();
  const std::string bytes = engine::EncodeCursor(cursor);
  if (!args.out.empty()) LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(args.out, AsBytes(bytes)));
  const std::vector<SourceEntry>& sources = data.corpus().manifest().sources;
  if (args.json) {
    Json positions = Json::array();
    for (size_t i = 0; i < sources.size(); ++i) {
      positions.push_back({{"source", sources[i].name},
                           {"epoch", cursor.sources[i].epoch},
                           {"documents", cursor.sources[i].documents}});
    }
    LOCKSTEP_RETURN_IF_ERROR(PrintJson({{"step", args.step},
                                        {"window", cursor.window},
                                        {"draws", cursor.draws},
                                        {"sources", std::move(positions)},
                                        {"cursor", HexEncode(AsBytes(bytes))},
                                        {"digest", engine::CursorDigest(cursor).ToHex()}}));
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
  AddTrace(corpus, chosen);
  AddPlan(corpus, chosen);
  AddFetch(corpus, chosen);
  AddCursor(corpus, chosen);
}

}  // namespace lockstep::cli
