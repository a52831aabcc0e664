// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of run.toml. Every key is known or an error: a misspelt rate that silently
// stays the preset's would be found out after a run.
#include "engine/run_config.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "audit/presets.h"
#include "audit/run_manifest_fields.h"
#include "base/canonical_json.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/toml_type.h"
#include "toml++/toml.h"

namespace lockstep::engine {
namespace {

constexpr size_t kConfigBytesMax = size_t{1} << 20;
constexpr size_t kPathBytesMax = 4096;

// Insertions, removals and replacements of single characters that make b of a.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

// The first thing that is amiss in a file.
class Complaint {
 public:
  explicit Complaint(std::string file) : file_(std::move(file)) {}

  void Make(const toml::source_region& where, absl::string_view key, absl::string_view expected,
            absl::string_view found) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(file_, ":", where.begin.line, ": ", key,
                                                      ": expected ", expected, "; found ", found));
  }
  const absl::Status& status() const { return status_; }

 private:
  std::string file_;
  absl::Status status_;
};

// One table of the file, or none of it; read key by key. Absent keys leave values as they are.
// Called with a field and a value, as audit::Visit...Fields do, it reads that.
class TableReader {
 public:
  TableReader(const toml::table* table, std::string prefix, Complaint* complaint)
      : table_(table), prefix_(std::move(prefix)), complaint_(*complaint) {}

  void operator()(const audit::IntegerField& field, int64_t& value) {
    const toml::node* node = Find(field.name);
    if (node == nullptr) return;
    const std::optional<int64_t> found = node->value_exact<int64_t>();
    if (found.has_value() && *found >= field.least && *found <= field.most) {
      value = *found;
      return;
    }
    Fail(*node, field.name, absl::StrCat("an integer from ", field.least, " to ", field.most),
         found.has_value() ? absl::StrCat(*found) : TypeOf(*node));
  }

  void operator()(const audit::NumberField& field, double& value) {
    const toml::node* node = Find(field.name);
    if (node == nullptr) return;
    const std::optional<double> found =
        node->is_number() ? node->value<double>() : std::optional<double>();
    if (found.has_value() && *found >= field.least && *found <= field.most) {
      value = *found;
      return;
    }
    Fail(*node, field.name,
         absl::StrCat("a number from ", CanonicalNumber(field.least), " to ",
                      CanonicalNumber(field.most)),
         found.has_value() ? absl::StrCat(*found) : TypeOf(*node));
  }

  // Whether the key is there.
  bool String(const char* key, size_t bytes_max, std::string* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return false;
    const std::optional<std::string> found = node->value_exact<std::string>();
    if (found.has_value() && !found->empty() && found->size() <= bytes_max) {
      *value = *found;
    } else {
      Fail(*node, key, absl::StrCat("a string of 1 to ", bytes_max, " bytes"),
           found.has_value() ? absl::StrCat(found->size(), " bytes") : TypeOf(*node));
    }
    return true;
  }

  template <typename Enum>
  void Word(const char* key, const char* (*name)(Enum), Enum a, Enum b, Enum* value) {
    std::string word = name(*value);
    if (!String(key, 64, &word)) return;
    if (word == name(a)) {
      *value = a;
    } else if (word == name(b)) {
      *value = b;
    } else {
      Fail(*Find(key), key, absl::StrCat("\"", name(a), "\" or \"", name(b), "\""),
           absl::StrCat("\"", word, "\""));
    }
  }

  // Of an absent table, a reader that finds nothing.
  TableReader Table(const char* key) {
    const toml::node* node = Find(key);
    if (node != nullptr && !node->is_table()) Fail(*node, key, "a table", TypeOf(*node));
    return {node == nullptr ? nullptr : node->as_table(), absl::StrCat(prefix_, key, "."),
            &complaint_};
  }

  // Null if the key is absent or no array of 1 to items_max tables.
  const toml::array* Tables(const char* key, size_t items_max) {
    const toml::node* node = Find(key);
    if (node == nullptr) return nullptr;
    const toml::array* array = node->as_array();
    if (array != nullptr && array->is_array_of_tables() && array->size() <= items_max) return array;
    Fail(*node, key, absl::StrCat("an array of 1 to ", items_max, " tables"),
         array == nullptr ? TypeOf(*node) : absl::StrCat(array->size(), " items"));
    return nullptr;
  }

  bool Has(const char* key) { return Find(key) != nullptr; }
  bool exists() const { return table_ != nullptr; }

  void Missing(const char* key, absl::string_view expected) {
    complaint_.Make(table_ == nullptr ? toml::source_region() : table_->source(),
                    absl::StrCat(prefix_, key), expected, "no such key");
  }

  // Complains of the first key that nobody asked for.
  void Finish() {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      const std::string name(key.str());
      if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
      const auto nearest =
          std::min_element(asked_.begin(), asked_.end(), [&](const auto& a, const auto& b) {
            return EditDistance(name, a) < EditDistance(name, b);
          });
      // Not so near that one would take it for the other.
      const bool near = EditDistance(name, *nearest) <= 1 + name.size() / 3;
      complaint_.Make(key.source(), absl::StrCat(prefix_, name),
                      near ? absl::StrCat("a key that exists, such as ", prefix_, *nearest)
                           : absl::StrCat("one of ", absl::StrJoin(asked_, ", ")),
                      "this key");
    }
  }

 private:
  const toml::node* Find(const char* key) {
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
    return table_ == nullptr ? nullptr : table_->get(key);
  }

  void Fail(const toml::node& node, const char* key, absl::string_view expected,
            absl::string_view found) {
    complaint_.Make(node.source(), absl::StrCat(prefix_, key), expected, found);
  }

  const toml::table* table_;
  std::string prefix_;
  Complaint& complaint_;
  std::vector<std::string> asked_;
};

// A path beside the file. table: TOP.key
std::string ReadPath(TableReader& table, TableReader& top, const char* key,
                     const std::string& file) {
  std::string path;
  if (!table.String("path", kPathBytesMax, &path)) {
    if (table.exists()) {
      table.Missing("path", "a path");
    } else {
      top.Missing(key, "a table with a path");
    }
  }
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

// Of a table that has nothing else.
std::string ReadPath(TableReader& top, const char* key, const std::string& file) {
  TableReader table = top.Table(key);
  std::string path = ReadPath(table, top, key, file);
  table.Finish();
  return path;
}

// Phases replace the preset's, and each must be whole. Unless total_tokens is given too, the cosine
// then ends where they do.
void ReadBatch(TableReader& top, Complaint* complaint, bool total_is_given,
               audit::RunManifest* run) {
  TableReader batch = top.Table("batch");
  const toml::array* phases = batch.Tables("phases", audit::kBatchPhasesMax);
  batch.Finish();
  if (phases == nullptr) return;
  run->batch.clear();
  for (const toml::node& node : *phases) {
    TableReader phase(node.as_table(), absl::StrCat("batch.phases[", run->batch.size(), "]."),
                      complaint);
    audit::VisitBatchFields(run->batch.emplace_back(),
                            [&](const audit::IntegerField& field, int64_t& value) {
                              if (!phase.Has(field.name)) phase.Missing(field.name, "an integer");
                              phase(field, value);
                            });
    phase.Finish();
  }
  if (!total_is_given) run->recipe.total_tokens = run->batch.back().until_tokens;
}

void ReadParent(TableReader& top, RunConfig* config) {
  TableReader table = top.Table("parent");
  if (!table.exists()) return;
  config->parent_path = ReadPath(table, top, "parent", config->file);
  if (!table.Has("step")) table.Missing("step", "an integer");
  int64_t step = 0;
  table(audit::IntegerField{"step", 1, audit::kTokensMax, ""}, step);
  config->parent_step = static_cast<uint64_t>(step);
  table.Finish();
}

void ReadOverrides(TableReader& top, Complaint* complaint, audit::RunManifest* run) {
  top.String("name", audit::kRunNameBytesMax, &run->name);
  top.Word("precision", audit::PrecisionName, audit::Precision::kInt8, audit::Precision::kBf16,
           &run->precision);
  top.Word("parameter_storage", audit::ParameterStorageName, audit::ParameterStorage::kBf16,
           audit::ParameterStorage::kF32, &run->parameter_storage);
  auto seed = static_cast<int64_t>(run->seed);
  top(audit::kSeedField, seed);
  run->seed = static_cast<uint64_t>(seed);
  top(audit::kCheckpointEveryField, run->checkpoint_every);

  TableReader model = top.Table("model");
  audit::VisitModelFields(run->model, model);
  model.Finish();
  TableReader recipe = top.Table("recipe");
  audit::VisitRecipeFields(run->recipe, recipe);
  recipe.Finish();
  TableReader topology = top.Table("topology");
  audit::VisitTopologyFields(run->topology, topology);
  topology.Finish();
  ReadBatch(top, complaint, recipe.Has("total_tokens"), run);
}

// 400_000_000_000
std::string Grouped(int64_t value) {
  std::string digits = absl::StrCat(value);
  if (digits.size() < 5) return digits;
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, "_");
  return digits;
}

// Writes fields as comments.
class ExampleWriter {
 public:
  explicit ExampleWriter(std::string* text) : text_(*text) {}

  void operator()(const audit::IntegerField& field, int64_t value) {
    Line(field.name, Grouped(value), field.meaning);
  }
  void operator()(const audit::NumberField& field, double value) {
    Line(field.name, CanonicalNumber(value), field.meaning);
  }
  void Line(absl::string_view key, absl::string_view value, absl::string_view meaning) {
    absl::StrAppend(&text_, "# ", key, " = ", value);
    if (!meaning.empty()) absl::StrAppend(&text_, "  # ", meaning);
    text_ += '\n';
  }

 private:
  std::string& text_;
};

}  // namespace

absl::StatusOr<RunConfig> ParseRunConfig(absl::string_view text, const std::string& file) {
  toml::table toml;
  try {
    toml = toml::parse(std::string_view(text.data(), text.size()));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", error.source().begin.line, ": expected TOML; found at column ",
                     error.source().begin.column, ": ", std::string(error.description())));
  }
  Complaint complaint(file);
  TableReader top(&toml, "", &complaint);
  std::string preset;
  if (!top.String("preset", 64, &preset)) {
    top.Missing("preset", absl::StrCat("one of ", absl::StrJoin(audit::PresetNames(), ", ")));
  }
  LOCKSTEP_RETURN_IF_ERROR(complaint.status());
  RunConfig config;
  config.file = file;
  if (absl::StatusOr<audit::RunManifest> run = audit::Preset(preset); run.ok()) {
    config.manifest = *std::move(run);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ":", toml.get("preset")->source().begin.line, ": ", run.status().message()));
  }
  ReadOverrides(top, &complaint, &config.manifest);
  config.corpus_path = ReadPath(top, "corpus", file);
  config.tokenizer_path = ReadPath(top, "tokenizer", file);
  ReadParent(top, &config);
  top.Finish();
  LOCKSTEP_RETURN_IF_ERROR(complaint.status());
  LOCKSTEP_RETURN_IF_ERROR(audit::ValidateRunManifest(config.manifest), file);
  return config;
}

absl::StatusOr<RunConfig> LoadRunConfig(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kConfigBytesMax));
  return ParseRunConfig(text, path);
}

absl::StatusOr<audit::RunManifest> ResolveRunConfig(
    const RunConfig& config, const Digest& corpus, const Digest& tokenizer,
    const std::optional<audit::ParentSegment>& parent) {
  audit::RunManifest run = config.manifest;
  run.parent = parent;
  run.corpus = corpus;
  run.tokenizer = tokenizer;
  LOCKSTEP_RETURN_IF_ERROR(audit::ValidateRunManifest(run), config.file);
  return run;
}

absl::StatusOr<std::string> ExampleRunConfig(absl::string_view preset) {
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::RunManifest run, audit::Preset(preset));
  std::string text = absl::StrCat(
      "# A run of lockstep. What is commented out is as the preset has it; \"lockstep run init\"\n"
      "# makes the run's manifest of this file.\n"
      "preset = \"",
      preset, "\"  # ", absl::StrJoin(audit::PresetNames(), ", "), "\nname = \"", run.name, "\"\n");
  ExampleWriter write(&text);
  write(audit::kSeedField, static_cast<int64_t>(run.seed));
  write(audit::kCheckpointEveryField, run.checkpoint_every);
  write.Line("precision", absl::StrCat("\"", audit::PrecisionName(run.precision), "\""),
             "of the blocks' linear layers: int8 or bf16");
  write.Line("parameter_storage",
             absl::StrCat("\"", audit::ParameterStorageName(run.parameter_storage), "\""),
             "between steps: bf16 or f32");
  text +=
      "\n[corpus]\npath = \"corpus\"  # the folder of token shards\n"
      "\n[tokenizer]\npath = \"tokenizer.txt\"\n\n[model]\n";
  audit::VisitModelFields(run.model, write);
  text += "\n[recipe]\n";
  audit::VisitRecipeFields(run.recipe, write);
  text += "\n[topology]\n";
  audit::VisitTopologyFields(run.topology, write);
  for (const audit::BatchPhaseConfig& phase : run.batch) {
    text += "\n# [[batch.phases]]\n";
    audit::VisitBatchFields(phase, write);
  }
  return text;
}

}  // namespace lockstep::engine
