// SPDX-License-Identifier: Apache-2.0
//
// Ingest of plain JSON lines, from files to durable document stores, against what others do with
// the same files: Python's json and hashlib, which is what such filters are usually written with,
// and simdjson alone, which only parses and so is a ceiling. The files are those of the sources in
// LOCKSTEP_CORPUS_TOML, or in build/corpus/ci/corpus.toml, which scripts/bench fetches.
#ifdef __linux__
#include <sched.h>
#endif

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/logging.h"
#include "bench/harness.h"
#include "bench/temporary_folder.h"
#include "engine/corpus/corpus_config.h"
#include "engine/corpus/ingest.h"
#include "engine/corpus/input_files.h"
#include "simdjson.h"

namespace lockstep::engine {
namespace {

// The calling thread, and those that it starts, may run on every CPU that it had when the first
// of these was made; the harness holds it on one.
class OnAllCpus {
 public:
#ifdef __linux__
  OnAllCpus() {
    sched_getaffinity(0, sizeof(before_), &before_);
    sched_setaffinity(0, sizeof(All()), &All());
  }
  ~OnAllCpus() { sched_setaffinity(0, sizeof(before_), &before_); }
  static void Remember() { All(); }

 private:
  static const cpu_set_t& All() {
    static const cpu_set_t all = [] {
      cpu_set_t set;
      sched_getaffinity(0, sizeof(set), &set);
      return set;
    }();
    return all;
  }
  cpu_set_t before_;
#else
  static void Remember() {}
#endif
};

struct Input {
  SourceConfig source;
  InputFiles files;
};

std::vector<Input> Inputs() {
  const char* const chosen = std::getenv("LOCKSTEP_CORPUS_TOML");
  const std::string path =
      chosen != nullptr ? chosen : LOCKSTEP_SOURCE_DIR "/build/corpus/ci/corpus.toml";
  const absl::StatusOr<CorpusConfig> config = LoadCorpusConfig(path);
  LOCKSTEP_CHECK(config.ok(), "{} (scripts/fetch-corpus ci makes it)", config.status().message());
  std::vector<Input> inputs;
  for (const SourceConfig& source : config->sources)
    inputs.push_back({source, ListInputFiles(source).value()});
  return inputs;
}

void IngestAll(const std::vector<Input>& inputs, bool deduplicate, int threads) {
  const bench::TemporaryFolder folder;
  for (const Input& input : inputs) {
    SourceConfig source = input.source;
    source.deduplicate = deduplicate;
    const absl::StatusOr<IngestReport> report =
        IngestSource(source, input.files, absl::StrCat(folder.path(), "/", source.name),
                     {.threads = threads}, {});
    LOCKSTEP_CHECK(report.ok() && report->Of(Outcome::kKept).documents > 0);
  }
}

// Every line parsed, its text looked at, nothing else.
void ParseAll(const std::vector<Input>& inputs) {
  simdjson::dom::parser parser;
  LOCKSTEP_CHECK(parser.allocate(size_t{4} << 20) == simdjson::SUCCESS);
  for (const Input& input : inputs) {
    for (const InputFile& file : input.files.files) {
      std::string bytes = ReadFile(file.path, size_t{1} << 32).value();
      bytes.reserve(bytes.size() + simdjson::SIMDJSON_PADDING);
      for (size_t at = 0; at < bytes.size();) {
        const void* const found = memchr(bytes.data() + at, '\n', bytes.size() - at);
        const size_t end =
            found == nullptr ? bytes.size()
                             : static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
        std::string_view text;
        const simdjson::error_code error =
            parser.parse(bytes.data() + at, end - at, false)[input.source.text_field].get(text);
        LOCKSTEP_CHECK(error == simdjson::SUCCESS && !text.empty());
        at = end + 1;
      }
    }
  }
}

// What a filter in Python does at least: parse, check for blank text, know duplicates, write lines.
std::string PythonCommand(const std::vector<Input>& inputs) {
  std::string command =
      "python3 -c 'import hashlib, json, sys\n"
      "seen = set()\n"
      "with open(\"/dev/null\", \"wb\") as out:\n"
      "    for path in sys.argv[1:]:\n"
      "        for line in open(path, \"rb\"):\n"
      "            text = json.loads(line)[\"text\"].encode()\n"
      "            key = hashlib.sha256(text).digest()\n"
      "            if text.strip() and key not in seen:\n"
      "                seen.add(key)\n"
      "                out.write(text)\n"
      "assert seen'";
  for (const Input& input : inputs) {
    for (const InputFile& file : input.files.files) absl::StrAppend(&command, " '", file.path, "'");
  }
  return command;
}

LOCKSTEP_BENCH(ingest, "JSON lines into document stores, against Python's json and simdjson", b) {
  OnAllCpus::Remember();
  const std::vector<Input> inputs = Inputs();
  int64_t bytes = 0;
  for (const Input& input : inputs) bytes += input.files.bytes;
  const std::string python = PythonCommand(inputs);
  const bool has_python = std::system("python3 -c pass") == 0;
  for (const bool deduplicate : {false, true}) {
    for (const int threads : {1, 2}) {
      const auto compare = [&](const std::string& peer, const std::function<void()>& call) {
        b.Compare({.name = absl::StrCat(bytes / 1'000'000, " MB",
                                        deduplicate ? ", deduplicated" : "", ", ", threads, "T"),
                   .unit = "MB/s",
                   .work = 1e3 * static_cast<double>(bytes),
                   .ours =
                       [&] {
                         std::optional<OnAllCpus> all;
                         if (threads > 1) all.emplace();
                         IngestAll(inputs, deduplicate, threads);
                       },
                   .peer = peer,
                   .peer_call = call});
      };
      if (deduplicate && has_python)
        compare("Python json, 1T", [&] { LOCKSTEP_CHECK(std::system(python.c_str()) == 0); });
      if (!deduplicate) compare("simdjson parse, 1T", [&] { ParseAll(inputs); });
    }
  }
}

}  // namespace
}  // namespace lockstep::engine
