// SPDX-License-Identifier: Apache-2.0
//
// `lockstep tokenizer encode | decode | inspect`: what works with a tokenizer file.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/threads.h"
#include "engine/corpus/document_store.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::cli {
namespace {

using engine::Tokenizer;
using engine::Vocabulary;
using Json = nlohmann::json;

constexpr size_t kTextBytesMax = size_t{4} << 30;

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path != "-") return ReadFile(path, kTextBytesMax);
  std::string bytes;
  char block[1 << 16];
  while (const size_t n = std::fread(block, 1, sizeof(block), stdin)) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    bytes.append(block, n);
  }
  if (std::ferror(stdin)) return absl::ErrnoToStatus(errno, "cannot read standard input");
  return bytes;
}

// ---- encode

struct EncodeArgs {
  std::string tokenizer;
  std::vector<std::string> from;
  std::optional<std::string> text;
  int threads = DefaultThreads();
  bool json = false;
  bool with_text = false;
};

// One text's line of output.
absl::Status PrintIds(const std::string& name, absl::string_view text,
                      const std::vector<int32_t>& ids, const EncodeArgs& args) {
  if (!args.json) return Print(absl::StrCat(absl::StrJoin(ids, " "), "\n"));
  Json line = {{"name", name}, {"ids", ids}};
  if (args.with_text) line["text"] = std::string(text);
  return PrintJson(line);
}

absl::Status EncodeText(const Tokenizer& tokenizer, const std::string& name, absl::string_view text,
                        const EncodeArgs& args) {
  std::vector<int32_t> ids;
  tokenizer.Encode(text, &ids);
  return PrintIds(name, text, ids, args);
}

absl::Status EncodeStore(const Tokenizer& tokenizer, const std::string& folder, ThreadPool& pool,
                         const EncodeArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto store, engine::DocumentStore::Open(folder));
  // On a terminal the ids themselves are what one sees.
  Progress progress(absl::StrCat("encoding ", folder), store.text_bytes(), "B",
                    args.json || isatty(STDOUT_FILENO) != 0);
  for (int64_t part = 0; part < store.parts(); ++part) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<engine::Document> documents, store.ReadPart(part));
    std::vector<absl::string_view> texts;
    for (const engine::Document& document : documents) texts.push_back(document.text);
    const std::vector<std::vector<int32_t>> ids = tokenizer.EncodeAll(texts, pool);
    for (size_t i = 0; i < ids.size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(PrintIds(documents[i].name, texts[i], ids[i], args));
      progress.Add(static_cast<int64_t>(texts[i].size()));
    }
  }
  return absl::OkStatus();
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::Status RunEncode(const EncodeArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(args.tokenizer));
  if (args.text) return EncodeText(*tokenizer, "", *args.text, args);
  ThreadPool pool(args.threads);
  std::vector<std::string> paths = args.from;
  if (paths.empty()) paths = {"-"};
  for (const std::string& path : paths) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    if (path != "-" && IsFolder(path)) {
      LOCKSTEP_RETURN_IF_ERROR(EncodeStore(*tokenizer, path, pool, args));
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadInput(path));
      LOCKSTEP_RETURN_IF_ERROR(EncodeText(*tokenizer, path, text, args));
    }
  }
  return absl::OkStatus();
}

void AddEncode(CLI::App& group, Action* chosen) {
  const auto args = std::make_shared<EncodeArgs>();
  CLI::App* encode = group.add_subcommand(
      "encode",
      "Print the token ids of texts, a line each. Special tokens written in a text are ordinary\n"
      "text; bytes that are not UTF-8 are encoded as they are.");
  encode->add_option("--tokenizer", args->tokenizer, "tokenizer file")->required();
  encode->add_option(
      "FILE", args->from,
      "files, each one text, or folders that `corpus ingest` wrote, each document one text; "
      "none or - is standard input");
  encode->add_option("--text", args->text, "this text instead");
  encode->add_option("--threads", args->threads, "threads; the result is the same for any number")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  encode->add_flag("--json", args->json, "a JSON object a line: name and ids; draw no progress");
  encode->add_flag("--with-text", args->with_text, "with --json: the text too");
  encode->footer(
      "Example:\n"
      "  lockstep tokenizer encode --tokenizer my.tokenizer --text \"Hello, world\"");
  encode->callback([args, chosen] { *chosen = [args] { return RunEncode(*args); }; });
}

// ---- decode

struct DecodeArgs {
  std::string tokenizer;
  std::vector<int32_t> ids;
  bool json = false;
};

absl::Status RunDecode(const DecodeArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(args.tokenizer));
  std::vector<int32_t> ids = args.ids;
  if (ids.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadInput("-"));
    for (absl::string_view word :
         absl::StrSplit(text, absl::ByAnyChar(" \t\r\n,[]"), absl::SkipEmpty())) {
      int32_t id = 0;
      if (!absl::SimpleAtoi(word, &id)) {
        return absl::InvalidArgumentError(absl::StrCat("standard input: expected id ", ids.size(),
                                                       ", found ", Quoted(word.substr(0, 60))));
      }
      ids.push_back(id);
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, tokenizer->Decode(ids));
  if (!args.json) return Print(text);
  return PrintJson({{"text", text}, {"base64", Base64Encode(AsBytes(text))}});
}

void AddDecode(CLI::App& group, Action* chosen) {
  const auto args = std::make_shared<DecodeArgs>();
  CLI::App* decode =
      group.add_subcommand("decode", "Print the bytes of token ids, with nothing added.");
  decode->add_option("--tokenizer", args->tokenizer, "tokenizer file")->required();
  decode->add_option("ID", args->ids,
                     "ids; none: those on standard input, between blanks or commas");
  decode->add_flag("--json", args->json, "as JSON: text, and base64 of its bytes");
  decode->callback([args, chosen] { *chosen = [args] { return RunDecode(*args); }; });
}

// ---- inspect

struct InspectArgs {
  std::string tokenizer;
  int64_t id = -1;
  int64_t longest = 10;
  bool json = false;
};

Json TokenJson(const Tokenizer& tokenizer, int32_t id) {
  const Vocabulary& v = tokenizer.vocabulary();
  const std::string& bytes = v.entry(id);
  Json token = {{"id", id},
                {"text", bytes},
                {"base64", Base64Encode(AsBytes(bytes))},
                {"special", v.is_special(id)}};
  if (!v.is_special(id) && tokenizer.PairOf(id).first >= 0) {
    token["merges"] = {tokenizer.PairOf(id).first, tokenizer.PairOf(id).second};
  }
  return token;
}

std::string TokenLine(const Tokenizer& tokenizer, int32_t id) {
  const Vocabulary& v = tokenizer.vocabulary();
  if (v.is_special(id)) return absl::StrFormat("%8d  special    %s\n", id, Quoted(v.entry(id)));
  std::string line =
      absl::StrFormat("%8d  %4d bytes %s", id, v.entry(id).size(), Quoted(v.entry(id)));
  if (const auto [left, right] = tokenizer.PairOf(id); left >= 0) {
    absl::StrAppendFormat(&line, "  = %s %s", Quoted(v.entry(left)), Quoted(v.entry(right)));
  }
  return line + "\n";
}

// Ids of the longest tokens, of equals the lowest.
std::vector<int32_t> Longest(const Vocabulary& v, int64_t count) {
  std::vector<int32_t> ids(v.tokens.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&v](int32_t a, int32_t b) { return v.tokens[a].size() > v.tokens[b].size(); });
  ids.resize(std::min<size_t>(ids.size(), static_cast<size_t>(count)));
  return ids;
}

struct Summary {
  int64_t bytes = 0;  // of all ordinary tokens
  int64_t whole_pieces_only = 0;
  std::map<size_t, int64_t> lengths;
};

Summary Summarise(const Tokenizer& tokenizer) {
  Summary summary;
  const Vocabulary& v = tokenizer.vocabulary();
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    summary.bytes += static_cast<int64_t>(v.tokens[id].size());
    ++summary.lengths[v.tokens[id].size()];
    if (id >= 256 && tokenizer.PairOf(static_cast<int32_t>(id)).first < 0) {
      ++summary.whole_pieces_only;
    }
  }
  return summary;
}

absl::Status InspectAll(const Tokenizer& tokenizer, const InspectArgs& args) {
  const Vocabulary& v = tokenizer.vocabulary();
  const Summary summary = Summarise(tokenizer);
  const std::vector<int32_t> longest = Longest(v, args.longest);
  if (args.json) {
    Json report = {{"digest", tokenizer.digest().ToHex()},
                   {"entries", v.size()},
                   {"tokens", v.tokens.size()},
                   {"token_bytes", summary.bytes},
                   {"whole_pieces_only", summary.whole_pieces_only},
                   {"special_tokens", v.special_tokens},
                   {"end_of_text", v.end_of_text},
                   {"longest", Json::array()},
                   {"lengths", Json::object()}};
    for (int32_t id : longest) report["longest"].push_back(TokenJson(tokenizer, id));
    for (const auto& [length, count] : summary.lengths) {
      report["lengths"][absl::StrCat(length)] = count;
    }
    return PrintJson(report);
  }
  std::string out = absl::StrFormat(
      "sha256       %s\nentries      %d: %d ordinary, %d special\nend of text  %d\n"
      "length       %.2f bytes on average, %d at most\n",
      tokenizer.digest().ToHex(), v.size(), v.tokens.size(), v.special_tokens.size(), v.end_of_text,
      static_cast<double>(summary.bytes) / static_cast<double>(v.tokens.size()),
      summary.lengths.rbegin()->first);
  if (summary.whole_pieces_only > 0) {
    absl::StrAppendFormat(&out, "whole pieces %d tokens that no merge makes\n",
                          summary.whole_pieces_only);
  }
  absl::StrAppend(&out, "special tokens, and the longest tokens with what they are merged from:\n");
  for (auto id = static_cast<int32_t>(v.tokens.size()); id < v.size(); ++id) {
    absl::StrAppend(&out, TokenLine(tokenizer, id));
  }
  for (int32_t id : longest) absl::StrAppend(&out, TokenLine(tokenizer, id));
  return Print(out);
}

absl::Status RunInspect(const InspectArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(args.tokenizer));
  if (args.id < 0) return InspectAll(*tokenizer, args);
  if (args.id >= tokenizer->vocab_size()) {
    return absl::InvalidArgumentError(absl::StrCat(args.tokenizer, ": no token has id ", args.id,
                                                   "; expected 0 to ",
                                                   tokenizer->vocab_size() - 1));
  }
  const auto id = static_cast<int32_t>(args.id);
  return args.json ? PrintJson(TokenJson(*tokenizer, id)) : Print(TokenLine(*tokenizer, id));
}

void AddInspect(CLI::App& group, Action* chosen) {
  const auto args = std::make_shared<InspectArgs>();
  CLI::App* inspect = group.add_subcommand(
      "inspect", "Show a tokenizer's digest, sizes, special and longest tokens, or one token.");
  inspect->add_option("--tokenizer", args->tokenizer, "tokenizer file")->required();
  inspect->add_option("--id", args->id, "only this token")->check(CLI::NonNegativeNumber);
  inspect->add_option("--longest", args->longest, "how many of the longest tokens")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  inspect->add_flag("--json", args->json, "as JSON");
  inspect->callback([args, chosen] { *chosen = [args] { return RunInspect(*args); }; });
}

}  // namespace

void AddTokenizerTextCommands(CLI::App& group, Action* chosen) {
  AddEncode(group, chosen);
  AddDecode(group, chosen);
  AddInspect(group, chosen);
}

}  // namespace lockstep::cli
