// SPDX-License-Identifier: Apache-2.0
//
// Reading of corpus.toml. Every key is known or an error: a misspelt filter that silently keeps
// everything would change a corpus.
#include "engine/corpus/corpus_config.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/corpus/utf8.h"
#include "engine/toml_type.h"
#include "nlohmann/json.hpp"
#include "toml++/toml.h"

namespace lockstep::engine {
namespace {

constexpr size_t kConfigBytesMax = size_t{1} << 20;
constexpr size_t kSourcesMax = 4096;
constexpr size_t kStringBytesMax = 4096;

template <typename T>
using Choices = std::vector<std::pair<absl::string_view, T>>;

const Choices<DocumentFormat>& Formats() {
  static const auto* const formats = new Choices<DocumentFormat>{
      {"jsonl", DocumentFormat::kJsonl},       {"parquet", DocumentFormat::kParquet},
      {"text", DocumentFormat::kText},         {"code", DocumentFormat::kCode},
      {"markdown", DocumentFormat::kMarkdown}, {"html", DocumentFormat::kHtml}};
  return *formats;
}

// What files a folder stands for, unless the source says.
std::vector<std::string> DefaultExtensions(DocumentFormat format) {
  switch (format) {
    case DocumentFormat::kJsonl:
      return {".jsonl", ".ndjson"};
    case DocumentFormat::kParquet:
      return {".parquet"};
    case DocumentFormat::kText:
      return {".txt"};
    case DocumentFormat::kMarkdown:
      return {".md", ".markdown"};
    case DocumentFormat::kHtml:
      return {".html", ".htm", ".xhtml"};
    case DocumentFormat::kCode:
      return {".c",    ".cc", ".cpp",   ".cs", ".css", ".cu",    ".go",  ".h",  ".hpp", ".hs",
              ".java", ".jl", ".js",    ".kt", ".lua", ".ml",    ".php", ".pl", ".py",  ".r",
              ".rb",   ".rs", ".scala", ".sh", ".sql", ".swift", ".tex", ".ts", ".zig"};
  }
  return {};
}

// One table of the file, read key by key; the first error stays. Finish() complains about keys that
// nobody asked for.
class TableReader {
 public:
  TableReader(const toml::table* table, std::string where)
      : table_(table), where_(std::move(where)) {}

  bool Has(absl::string_view key) { return Find(key) != nullptr; }

  // Leaves `out` alone where the key is absent.
  void String(absl::string_view key, std::string* out) {
    const toml::node* node = Find(key);
    if (node != nullptr) ReadString(key, *node, out);
  }

  // A string, or an array of strings.
  void Strings(absl::string_view key, std::vector<std::string>* out) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    out->clear();
    const toml::array* array = node->as_array();
    if (array == nullptr) {
      ReadString(key, *node, &out->emplace_back());
      return;
    }
    if (array->empty()) Fail(key, *node, "at least one string", "an empty array");
    for (const toml::node& item : *array) ReadString(key, item, &out->emplace_back());
  }

  template <typename Int>
  void Integer(absl::string_view key, int64_t least, int64_t most, Int* out) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const std::optional<int64_t> value = node->value_exact<int64_t>();
    if (!value.has_value() || *value < least || *value > most) {
      Fail(key, *node, absl::StrCat("an integer from ", least, " to ", most),
           value.has_value() ? absl::StrCat(*value) : TypeOf(*node));
      return;
    }
    *out = static_cast<Int>(*value);
  }

  void Number(absl::string_view key, std::optional<double>* out) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
    // Not a NaN, with which nothing compares.
    if (!value.has_value() || *value != *value) {
      Fail(key, *node, "a number", TypeOf(*node));
      return;
    }
    *out = value;
  }

  void Bool(absl::string_view key, bool* out) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const std::optional<bool> value = node->value_exact<bool>();
    if (!value.has_value()) return Fail(key, *node, "true or false", TypeOf(*node));
    *out = *value;
  }

  template <typename T>
  void Choice(absl::string_view key, const Choices<T>& choices, T* out) {
    const toml::node* node = Find(key);
    std::string word;
    if (node == nullptr || !ReadString(key, *node, &word)) return;
    std::vector<absl::string_view> words;
    for (const auto& [name, value] : choices) {
      if (name == word) {
        *out = value;
        return;
      }
      words.push_back(name);
    }
    Fail(key, *node, absl::StrJoin(words, ", "), absl::StrCat("\"", word, "\""));
  }

  // An absent table reads as an empty one.
  TableReader Table(absl::string_view key) {
    const toml::node* node = Find(key);
    if (node != nullptr && !node->is_table()) Fail(key, *node, "a table", TypeOf(*node));
    return {node == nullptr ? nullptr : node->as_table(), absl::StrCat(where_, ".", key)};
  }

  // For checks of values: the error names the key's line.
  void Fail(absl::string_view key, absl::string_view expected, absl::string_view found) {
    const toml::node* node = Find(key);
    if (node != nullptr) {
      Fail(key, *node, expected, found);
    } else if (status_.ok()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat(where_, ": ", key, " is missing; expected ", expected));
    }
  }

  absl::Status Finish() {
    if (!status_.ok() || table_ == nullptr) return status_;
    for (const auto& [key, node] : *table_) {
      if (asked_.contains(key.str())) continue;
      return absl::InvalidArgumentError(absl::StrCat("line ", key.source().begin.line, ": ", where_,
                                                     " has no key \"", std::string(key.str()),
                                                     "\"; it has ", absl::StrJoin(asked_, ", ")));
    }
    return absl::OkStatus();
  }

 private:
  const toml::node* Find(absl::string_view key) {
    asked_.insert(std::string(key));
    return table_ == nullptr ? nullptr : table_->get(std::string_view(key.data(), key.size()));
  }

  bool ReadString(absl::string_view key, const toml::node& node, std::string* out) {
    const std::optional<std::string> value = node.value_exact<std::string>();
    if (!value.has_value()) {
      Fail(key, node, "a string", TypeOf(node));
      return false;
    }
    const bool control = std::any_of(value->begin(), value->end(), [](char c) {
      return absl::ascii_iscntrl(static_cast<uint8_t>(c));
    });
    if (value->empty() || value->size() > kStringBytesMax || control || !IsValidUtf8(*value)) {
      Fail(key, node,
           absl::StrCat("1 to ", kStringBytesMax, " bytes of text without control characters"),
           absl::StrCat(value->size(), " bytes"));
      return false;
    }
    *out = *value;
    return true;
  }

  void Fail(absl::string_view key, const toml::node& node, absl::string_view expected,
            absl::string_view found) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat("line ", node.source().begin.line, ": ",
                                                      where_, ".", key, ": expected ", expected,
                                                      "; found ", found));
  }

  const toml::table* table_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
  absl::Status status_;
};

bool IsSourceName(absl::string_view name) {
  if (name.empty() || name.size() > 64 || !absl::ascii_isalnum(static_cast<uint8_t>(name[0])))
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_islower(static_cast<uint8_t>(c)) ||
           absl::ascii_isdigit(static_cast<uint8_t>(c)) || c == '-' || c == '_' || c == '.';
  });
}

// Names of documents must not depend on where the files lie, so patterns stay below the root.
bool StaysBelow(absl::string_view pattern) {
  if (pattern[0] == '/') return false;
  for (const absl::string_view name : absl::StrSplit(pattern, '/')) {
    if (name.empty() || name == "..") return false;
  }
  return true;
}

void ReadFiles(TableReader& table, const std::string& folder, SourceConfig* source) {
  std::string root;
  table.String("root", &root);
  source->root = (std::filesystem::path(folder) / root).lexically_normal().string();
  if (source->root.size() > 1 && source->root.back() == '/') source->root.pop_back();
  table.Strings("paths", &source->paths);
  table.Strings("exclude", &source->exclude);
  source->extensions = DefaultExtensions(source->format);
  table.Strings("extensions", &source->extensions);
  if (source->paths.empty()) table.Fail("paths", "one or more paths or patterns", "");
  for (const auto& [key, paths] :
       {std::pair<const char*, std::vector<std::string>*>("paths", &source->paths),
        {"exclude", &source->exclude}}) {
    for (std::string& path : *paths) {
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      while (absl::StartsWith(path, "./") && path.size() > 2) path.erase(0, 2);
      if (path.empty() || StaysBelow(path)) continue;
      table.Fail(key, "paths below root, without \"..\" (root may be anywhere)",
                 absl::StrCat("\"", path, "\""));
    }
  }
  for (const std::string& extension : source->extensions) {
    if (!extension.empty() && extension[0] != '.') {
      table.Fail("extensions", "extensions that begin with a dot",
                 absl::StrCat("\"", extension, "\""));
    }
  }
}

absl::Status ReadFields(TableReader& table, SourceConfig* source) {
  TableReader fields = table.Table("fields");
  const bool has_fields =
      source->format == DocumentFormat::kJsonl || source->format == DocumentFormat::kParquet;
  if (table.Has("fields") && !has_fields) {
    table.Fail("fields", "no such table, which is for jsonl and parquet",
               absl::StrCat("format ", FormatName(source->format)));
  }
  const std::pair<absl::string_view, std::string*> names[] = {{"text", &source->text_field},
                                                              {"id", &source->id_field},
                                                              {"score", &source->score_field},
                                                              {"licence", &source->licence_field}};
  for (const auto& [key, name] : names) {
    fields.String(key, name);
    for (const absl::string_view part : absl::StrSplit(*name, '.')) {
      if (!name->empty() && part.empty()) fields.Fail(key, "names joined by single dots", *name);
    }
  }
  return fields.Finish();
}

absl::Status ReadFilters(TableReader& table, SourceConfig* source) {
  TableReader filters = table.Table("filters");
  filters.Number("score_min", &source->score_min);
  filters.Strings("licences", &source->licences);
  for (std::string& licence : source->licences) absl::AsciiStrToLower(&licence);
  std::sort(source->licences.begin(), source->licences.end());
  filters.Choice("over_long", {{"drop", OverLong::kDrop}, {"split", OverLong::kSplit}},
                 &source->over_long);
  // A piece must be able to hold a character, and is not worth its name if it is tiny.
  const int64_t least = source->over_long == OverLong::kSplit ? 64 : 1;
  filters.Integer("bytes_max", least, int64_t{1} << 40, &source->bytes_max);
  filters.Bool("deduplicate", &source->deduplicate);
  if (source->score_min.has_value() && source->score_field.empty()) {
    filters.Fail("score_min", "fields.score to say where a document's score is", "no such key");
  }
  if (!source->licences.empty() && source->licence_field.empty()) {
    filters.Fail("licences", "fields.licence to say where a document's licence is", "no such key");
  }
  if (source->over_long == OverLong::kSplit && source->bytes_max == 0) {
    filters.Fail("over_long", "bytes_max to say what is over-long", "no such key");
  }
  return filters.Finish();
}

absl::StatusOr<SourceConfig> ReadSource(const toml::table& toml, const std::string& folder) {
  SourceConfig source;
  TableReader table(&toml, "source");
  table.String("name", &source.name);
  if (!IsSourceName(source.name)) {
    table.Fail("name", "up to 64 of a-z, 0-9, '.', '_' and '-', the first one a letter or digit",
               absl::StrCat("\"", source.name, "\""));
  }
  table.String("licence", &source.licence);
  if (source.licence.empty())
    table.Fail("licence", "the source's licence, such as \"CC-BY-4.0\"", "");
  if (!table.Has("format"))
    table.Fail("format", "jsonl, parquet, text, code, markdown or html", "");
  table.Choice("format", Formats(), &source.format);
  ReadFiles(table, folder, &source);
  table.Choice("invalid_utf8",
               {{"replace", InvalidUtf8::kReplace},
                {"latin-1", InvalidUtf8::kLatin1},
                {"drop", InvalidUtf8::kDrop}},
               &source.invalid_utf8);
  LOCKSTEP_RETURN_IF_ERROR(ReadFields(table, &source));
  LOCKSTEP_RETURN_IF_ERROR(ReadFilters(table, &source));
  TableReader limits = table.Table("limits");
  limits.Integer("record_bytes_max", 64, int64_t{1} << 30, &source.record_bytes_max);
  limits.Integer("compression_ratio_max", 2, 1'000'000, &source.compression_ratio_max);
  limits.Integer("zstd_window_log_max", 10, 31, &source.zstd_window_log_max);
  LOCKSTEP_RETURN_IF_ERROR(limits.Finish());
  LOCKSTEP_RETURN_IF_ERROR(table.Finish());
  return source;
}

absl::StatusOr<CorpusConfig> ReadTop(const toml::table& toml, const std::string& folder) {
  for (const auto& [key, node] : toml) {
    if (key.str() == "source") continue;
    return absl::InvalidArgumentError(absl::StrCat("line ", key.source().begin.line,
                                                   ": expected only [[source]] tables; found \"",
                                                   std::string(key.str()), "\""));
  }
  const toml::array* sources = toml["source"].as_array();
  if (sources == nullptr || sources->empty() || !sources->is_array_of_tables() ||
      sources->size() > kSourcesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected 1 to ", kSourcesMax, " [[source]] tables; found ",
        sources == nullptr ? "none"
                           : absl::StrCat(sources->size(), " items, or others than tables")));
  }
  CorpusConfig config;
  std::set<std::string> names;
  for (const toml::node& node : *sources) {
    LOCKSTEP_ASSIGN_OR_RETURN(SourceConfig source, ReadSource(*node.as_table(), folder));
    if (!names.insert(source.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("line ", node.source().begin.line,
                                                     ": a second source \"", source.name,
                                                     "\"; expected names that differ"));
    }
    config.sources.push_back(std::move(source));
  }
  return config;
}

}  // namespace

absl::string_view FormatName(DocumentFormat format) {
  for (const auto& [name, value] : Formats()) {
    if (value == format) return name;
  }
  return "";
}

Digest SourceConfig::Fingerprint() const {
  const nlohmann::json json = {
      {"version", 1},
      {"name", name},
      {"licence", licence},
      {"format", std::string(FormatName(format))},
      {"paths", paths},
      {"exclude", exclude},
      {"extensions", extensions},
      {"text_field", text_field},
      {"id_field", id_field},
      {"score_field", score_field},
      {"licence_field", licence_field},
      {"score_min", score_min.has_value() ? nlohmann::json(std::bit_cast<uint64_t>(*score_min))
                                          : nlohmann::json()},
      {"licences", licences},
      {"bytes_max", bytes_max},
      {"over_long", over_long == OverLong::kSplit ? "split" : "drop"},
      {"deduplicate", deduplicate},
      {"invalid_utf8", static_cast<int>(invalid_utf8)},
      {"record_bytes_max", record_bytes_max}};
  // The limits of decompression are left out: they decide whether a run ends well, not what it
  // writes.
  return Sha256(AsBytes(json.dump()));
}

absl::StatusOr<CorpusConfig> ParseCorpusConfig(absl::string_view text, const std::string& folder) {
  toml::table toml;
  try {
    toml = toml::parse(std::string_view(text.data(), text.size()));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", error.source().begin.line, ", column ", error.source().begin.column,
                     ": not TOML: ", std::string(error.description())));
  }
  return ReadTop(toml, folder);
}

absl::StatusOr<CorpusConfig> LoadCorpusConfig(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kConfigBytesMax));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  LOCKSTEP_ASSIGN_OR_RETURN(CorpusConfig config, ParseCorpusConfig(text, folder), path);
  return config;
}

}  // namespace lockstep::engine
