// SPDX-License-Identifier: Apache-2.0
//
// `lockstep tokenizer`: train, encode, decode, import, export, inspect.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "engine/corpus/document_store.h"
#include "engine/tokenizer/formats.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/train.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

using engine::Tokenizer;
using engine::Vocabulary;
using nlohmann::json;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

constexpr size_t kTextBytesMax = size_t{4} << 30;

// All options of all subcommands: CLI11 wants their addresses to stay.
struct Options {
  std::vector<std::string> from;
  std::string tokenizer;
  std::string out;
  std::string format;
  std::string end_of_text = std::string(engine::kEndOfTextName);
  std::vector<std::string> special = {std::string(engine::kEndOfTextName)};
  std::vector<int32_t> ids;
  std::optional<std::string> text;
  int64_t vocab = 0;
  int64_t id = -1;
  int64_t longest = 10;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool json = false;
  bool with_text = false;
};

// Text of any bytes in JSON: as it is where it is UTF-8, else U+FFFD in place of what is not.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string Shown(absl::string_view bytes) {
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(bytes), "\"");
}

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path != "-") return ReadFile(path, kTextBytesMax);
  std::string bytes{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  return bytes;
}

absl::Status WriteOutput(absl::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
      std::fflush(stdout) != 0) {
    return absl::ErrnoToStatus(errno, "cannot write to standard output");
  }
  return absl::OkStatus();
}

// What train and import say of what they wrote.
void Report(const Vocabulary& v, const std::string& out, const Digest& digest, bool as_json) {
  if (as_json) {
    std::puts(Dump({{"file", out},
                    {"digest", digest.ToHex()},
                    {"entries", v.size()},
                    {"special_tokens", v.special_tokens.size()},
                    {"end_of_text", v.end_of_text}})
                  .c_str());
    return;
  }
  std::printf("%s: %lld entries, %zu of them special, sha256 %s\n", out.c_str(),
              static_cast<long long>(v.size()), v.special_tokens.size(), digest.ToHex().c_str());
}

absl::Status WriteTokenizer(const Vocabulary& v, const Options& options) {
  const std::string bytes = engine::SerializeVocabulary(v);
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(options.out, AsBytes(bytes)));
  Report(v, options.out, Sha256(AsBytes(bytes)), options.json);
  return absl::OkStatus();
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// A folder is what `corpus ingest` wrote; anything else is a text file.
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

absl::Status Train(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto source, OpenSources(options.from));
  ThreadPool pool(options.threads);
  absl::StatusOr<Vocabulary> vocabulary;
  {
    // The second line begins when the first is complete.
    std::optional<Progress> counting;
    std::optional<Progress> learning;
    counting.emplace("counting", source->bytes(), "B", options.json);
    const auto count = [&](int64_t bytes) { counting->Add(bytes); };
    const auto learn = [&](int64_t merges) {
      if (!learning) {
        counting.reset();
        learning.emplace("learning",
                         options.vocab - 256 - static_cast<int64_t>(options.special.size()),
                         "merges", options.json);
      }
      learning->Add(merges);
    };
    vocabulary = engine::TrainVocabulary(*source, options.vocab, options.special, pool,
                                         {&Interrupted, count, learn});
  }
  LOCKSTEP_RETURN_IF_ERROR(vocabulary.status());
  if (vocabulary->size() < options.vocab) {
    std::fprintf(stderr,
                 "the text has no more pairs that come twice: %lld entries instead of %lld\n",
                 static_cast<long long>(vocabulary->size()), static_cast<long long>(options.vocab));
  }
  return WriteTokenizer(*vocabulary, options);
}

std::string IdsLine(const std::vector<int32_t>& ids) {
  std::string line;
  for (size_t i = 0; i < ids.size(); ++i) absl::StrAppend(&line, i > 0 ? " " : "", ids[i]);
  return line;
}

// One text's line of output.
absl::Status WriteIds(const std::string& name, absl::string_view text,
                      const std::vector<int32_t>& ids, const Options& options) {
  if (!options.json) return WriteOutput(IdsLine(ids) + "\n");
  json line = {{"name", name}, {"ids", ids}};
  if (options.with_text) line["text"] = std::string(text);
  return WriteOutput(Dump(line) + "\n");
}

absl::Status EncodeStore(const Tokenizer& tokenizer, const std::string& folder, ThreadPool& pool,
                         const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto store, engine::DocumentStore::Open(folder));
  for (int64_t part = 0; part < store.parts(); ++part) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<engine::Document> documents, store.ReadPart(part));
    std::vector<absl::string_view> texts;
    for (const engine::Document& document : documents) texts.push_back(document.text);
    const std::vector<std::vector<int32_t>> ids = tokenizer.EncodeAll(texts, pool);
    for (size_t i = 0; i < ids.size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(WriteIds(documents[i].name, texts[i], ids[i], options));
    }
  }
  return absl::OkStatus();
}

absl::Status Encode(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TokenizerPtr tokenizer, Tokenizer::Load(options.tokenizer));
  ThreadPool pool(options.threads);
  const auto encode_text = [&](const std::string& name, absl::string_view text) {
    std::vector<int32_t> ids;
    tokenizer->Encode(text, &ids);
    return WriteIds(name, text, ids, options);
  };
  if (options.text) return encode_text("", *options.text);
  std::vector<std::string> paths = options.from;
  if (paths.empty()) paths = {"-"};
  for (const std::string& path : paths) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    if (path != "-" && IsFolder(path)) {
      LOCKSTEP_RETURN_IF_ERROR(EncodeStore(*tokenizer, path, pool, options));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadInput(path));
    LOCKSTEP_RETURN_IF_ERROR(encode_text(path, text));
  }
  return absl::OkStatus();
}

absl::Status Decode(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TokenizerPtr tokenizer, Tokenizer::Load(options.tokenizer));
  std::vector<int32_t> ids = options.ids;
  if (ids.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadInput("-"));
    for (absl::string_view word :
         absl::StrSplit(text, absl::ByAnyChar(" \t\r\n,[]"), absl::SkipEmpty())) {
      int32_t id = 0;
      if (!absl::SimpleAtoi(word, &id)) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected ids, found ", Shown(word.substr(0, 60))));
      }
      ids.push_back(id);
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, tokenizer->Decode(ids));
  if (!options.json) return WriteOutput(text);
  return WriteOutput(Dump({{"text", text}, {"base64", Base64Encode(AsBytes(text))}}) + "\n");
}

absl::Status Import(const Options& options) {
  const std::string& path = options.from[0];
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadFile(path, engine::kTokenizerFileBytesMax));
  absl::StatusOr<Vocabulary> v;
  if (options.format == "tiktoken") {
    v = engine::ImportTiktoken(bytes, options.special);
  } else {
    v = engine::ImportHuggingFace(bytes, options.end_of_text);
  }
  LOCKSTEP_RETURN_IF_ERROR(v.status(), path);
  return WriteTokenizer(*v, options);
}

absl::Status Export(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TokenizerPtr tokenizer, Tokenizer::Load(options.tokenizer));
  std::string bytes;
  if (options.format == "tiktoken") {
    bytes = engine::ExportTiktoken(tokenizer->vocabulary());
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(bytes, engine::ExportHuggingFace(*tokenizer));
  }
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(options.out, AsBytes(bytes)));
  if (options.json) {
    return WriteOutput(Dump({{"file", options.out},
                             {"format", options.format},
                             {"bytes", bytes.size()},
                             {"digest", Sha256(AsBytes(bytes)).ToHex()}}) +
                       "\n");
  }
  std::printf("%s: %zu bytes\n", options.out.c_str(), bytes.size());
  return absl::OkStatus();
}

json TokenJson(const Tokenizer& tokenizer, int32_t id) {
  const Vocabulary& v = tokenizer.vocabulary();
  const auto ordinary = static_cast<int32_t>(v.tokens.size());
  const bool special = id >= ordinary;
  const std::string& bytes = special ? v.special_tokens[id - ordinary] : v.tokens[id];
  json token = {
      {"id", id}, {"text", bytes}, {"base64", Base64Encode(AsBytes(bytes))}, {"special", special}};
  if (!special && tokenizer.PairOf(id).first >= 0) {
    token["merges"] = {tokenizer.PairOf(id).first, tokenizer.PairOf(id).second};
  }
  return token;
}

void PrintToken(const Tokenizer& tokenizer, int32_t id) {
  const Vocabulary& v = tokenizer.vocabulary();
  const auto ordinary = static_cast<int32_t>(v.tokens.size());
  if (id >= ordinary) {
    std::printf("%8d  special %s\n", id, Shown(v.special_tokens[id - ordinary]).c_str());
    return;
  }
  const auto [left, right] = tokenizer.PairOf(id);
  std::string line =
      absl::StrFormat("%8d  %4d bytes  %s", id, v.tokens[id].size(), Shown(v.tokens[id]));
  if (left >= 0)
    absl::StrAppendFormat(&line, "  = %s %s", Shown(v.tokens[left]), Shown(v.tokens[right]));
  std::puts(line.c_str());
}

// Ids of the longest tokens, of equals the lowest.
std::vector<int32_t> Longest(const Vocabulary& v, int64_t count) {
  std::vector<int32_t> ids(v.tokens.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&v](int32_t a, int32_t b) { return v.tokens[a].size() > v.tokens[b].size(); });
  ids.resize(std::min<size_t>(ids.size(), static_cast<size_t>(std::max<int64_t>(count, 0))));
  return ids;
}

absl::Status Inspect(const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TokenizerPtr tokenizer, Tokenizer::Load(options.tokenizer));
  const Vocabulary& v = tokenizer->vocabulary();
  if (options.id >= 0) {
    if (options.id >= v.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no token has id ", options.id, "; expected 0 to ", v.size() - 1));
    }
    const auto id = static_cast<int32_t>(options.id);
    if (options.json) return WriteOutput(Dump(TokenJson(*tokenizer, id)) + "\n");
    PrintToken(*tokenizer, id);
    return absl::OkStatus();
  }
  int64_t bytes = 0;
  int64_t without_pair = 0;
  std::map<size_t, int64_t> lengths;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    bytes += static_cast<int64_t>(v.tokens[id].size());
    ++lengths[v.tokens[id].size()];
    if (id >= 256 && tokenizer->PairOf(static_cast<int32_t>(id)).first < 0) ++without_pair;
  }
  const std::vector<int32_t> longest = Longest(v, options.longest);
  if (options.json) {
    json report = {{"digest", tokenizer->digest().ToHex()},
                   {"entries", v.size()},
                   {"tokens", v.tokens.size()},
                   {"token_bytes", bytes},
                   {"whole_pieces_only", without_pair},
                   {"special_tokens", v.special_tokens},
                   {"end_of_text", v.end_of_text},
                   {"longest", json::array()},
                   {"lengths", json::object()}};
    for (int32_t id : longest) report["longest"].push_back(TokenJson(*tokenizer, id));
    for (const auto& [length, count] : lengths) report["lengths"][absl::StrCat(length)] = count;
    return WriteOutput(Dump(report) + "\n");
  }
  std::printf(
      "sha256   %s\nentries  %lld: %zu tokens, %zu special\nlength   %.2f bytes on average\n",
      tokenizer->digest().ToHex().c_str(), static_cast<long long>(v.size()), v.tokens.size(),
      v.special_tokens.size(), static_cast<double>(bytes) / static_cast<double>(v.tokens.size()));
  if (without_pair > 0)
    std::printf("whole    %lld tokens that no merge makes\n", static_cast<long long>(without_pair));
  std::puts("special tokens, the longest tokens:");
  for (int64_t id = static_cast<int64_t>(v.tokens.size()); id < v.size(); ++id) {
    PrintToken(*tokenizer, static_cast<int32_t>(id));
  }
  for (int32_t id : longest) PrintToken(*tokenizer, id);
  return absl::OkStatus();
}

}  // namespace

void AddTokenizerCommands(CLI::App& app, Action* chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* group =
      app.add_subcommand("tokenizer", "text to token ids and back: byte-level byte-pair encoding");
  group->require_subcommand(1);
  const auto command = [&](const char* name, const char* what,
                           absl::Status (*run)(const Options&)) {
    CLI::App* sub = group->add_subcommand(name, what);
    sub->add_flag("--json", options->json, "print JSON, draw no progress");
    sub->callback([chosen, options, run] { *chosen = [options, run] { return run(*options); }; });
    return sub;
  };
  const auto add_tokenizer = [&options](CLI::App* sub) {
    sub->add_option("--tokenizer", options->tokenizer, "tokenizer file")->required();
  };
  const auto add_threads = [&options](CLI::App* sub) {
    sub->add_option("--threads", options->threads, "threads; the result is the same for any number")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
  };
  const auto add_format = [&options](CLI::App* sub) {
    sub->add_option("--format", options->format, "huggingface (tokenizer.json) or tiktoken (ranks)")
        ->required()
        ->check(CLI::IsMember({"huggingface", "tiktoken"}));
  };

  CLI::App* train = command("train", "learn a tokenizer from text", &Train);
  train->add_option("--from", options->from, "text files, or folders that `corpus ingest` wrote")
      ->required();
  train->add_option("--vocab", options->vocab, "entries, bytes and special tokens among them")
      ->required();
  train->add_option("--special", options->special, "special tokens; the first is the end of text")
      ->capture_default_str();
  train->add_option("--out", options->out, "tokenizer file to write")->required();
  add_threads(train);

  CLI::App* encode = command("encode", "token ids of texts, a line each", &Encode);
  add_tokenizer(encode);
  encode->add_option(
      "FILE", options->from,
      "text files, or folders that `corpus ingest` wrote; none or - is standard input");
  encode->add_option("--text", options->text, "this text instead");
  encode->add_flag("--with-text", options->with_text, "with --json: the text beside its ids");
  add_threads(encode);

  CLI::App* decode = command("decode", "the bytes of token ids", &Decode);
  add_tokenizer(decode);
  decode->add_option("ID", options->ids, "ids; none: those on standard input");

  CLI::App* import = command("import", "take over a tokenizer of another tool", &Import);
  add_format(import);
  import->add_option("FILE", options->from, "tokenizer.json or rank file")->required()->expected(1);
  import
      ->add_option("--special", options->special,
                   "tiktoken: special tokens; the first is the end of text")
      ->capture_default_str();
  import
      ->add_option("--end-of-text", options->end_of_text,
                   "huggingface: which added token is the end of text; added if missing")
      ->capture_default_str();
  import->add_option("--out", options->out, "tokenizer file to write")->required();

  CLI::App* export_command = command("export", "write a tokenizer for another tool", &Export);
  add_tokenizer(export_command);
  add_format(export_command);
  export_command->add_option("--out", options->out, "file to write")->required();

  CLI::App* inspect =
      command("inspect", "digest, sizes, the longest tokens, or one token", &Inspect);
  add_tokenizer(inspect);
  inspect->add_option("--id", options->id, "only this token")->check(CLI::NonNegativeNumber);
  inspect->add_option("--longest", options->longest, "how many of the longest tokens")
      ->capture_default_str();
}

}  // namespace lockstep::cli
