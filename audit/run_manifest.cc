// SPDX-License-Identifier: Apache-2.0
//
// The manifest's text and rules. Fields and their ranges: run_manifest_fields.h.
#include "audit/run_manifest.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "audit/run_manifest_fields.h"
#include "base/canonical_json.h"
#include "base/logging.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr char kFormat[] = "lockstep-run";
constexpr int64_t kVersion = 1;

// An int32 sum of this many products of two 8-bit integers cannot overflow
// (kernels/gemm_i8/gemm_i8.h).
constexpr int64_t kInt8DepthMax = 133'000;
constexpr int64_t kMicroBatchTokensMax = int64_t{1} << 24;
constexpr int64_t kParametersMax = int64_t{1} << 40;

// The first rule that is broken.
class Checker {
 public:
  void Expect(bool holds, absl::string_view field, absl::string_view expected,
              absl::string_view found) {
    if (holds || !status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("run manifest: ", field, ": expected ", expected, "; found ", found));
  }

  // For the Visit...Fields functions: every field of `part` keeps its range.
  auto Ranges(absl::string_view part) {
    return [this, part](const auto& field, const auto& value) { Range(part, field, value); };
  }
  void Range(absl::string_view part, const IntegerField& field, int64_t value) {
    Expect(value >= field.least && value <= field.most, Name(part, field.name),
           absl::StrCat("an integer from ", field.least, " to ", field.most), absl::StrCat(value));
  }
  // False for NaN too.
  void Range(absl::string_view part, const NumberField& field, double value) {
    Expect(value >= field.least && value <= field.most, Name(part, field.name),
           absl::StrCat("a number from ", CanonicalNumber(field.least), " to ",
                        CanonicalNumber(field.most)),
           absl::StrCat(value));
  }

  bool ok() const { return status_.ok(); }
  absl::Status Take() { return std::move(status_); }

 private:
  static std::string Name(absl::string_view part, const char* field) {
    return part.empty() ? field : absl::StrCat(part, ".", field);
  }

  absl::Status status_;
};

bool IsRunName(absl::string_view name) {
  if (name.empty() || name.size() > kRunNameBytesMax) return false;
  const auto alphanumeric = [](char c) {
    return absl::ascii_islower(static_cast<uint8_t>(c)) ||
           absl::ascii_isdigit(static_cast<uint8_t>(c));
  };
  return alphanumeric(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
           return alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

int64_t ParametersOf(const ModelConfig& m) {
  const int64_t layer = m.width * (m.qkv_width() + m.query_width() + 3 * m.ffn_width + 2);
  return m.width * (2 * m.vocab + 2) + m.layers * layer;
}

void CheckModel(const ModelConfig& m, Checker& checker) {
  VisitModelFields(m, checker.Ranges("model"));
  if (!checker.ok()) return;
  checker.Expect(m.query_heads % m.kv_heads == 0, "model.query_heads",
                 absl::StrCat("a multiple of kv_heads, ", m.kv_heads), absl::StrCat(m.query_heads));
  checker.Expect(m.head_dim % 16 == 0, "model.head_dim", "a multiple of 16",
                 absl::StrCat(m.head_dim));
  checker.Expect(m.window <= m.seq_len, "model.window",
                 absl::StrCat("at most seq_len, ", m.seq_len), absl::StrCat(m.window));
  checker.Expect(ParametersOf(m) <= kParametersMax, "model",
                 absl::StrCat("at most ", kParametersMax, " parameters"),
                 absl::StrCat(ParametersOf(m)));
}

void CheckRecipe(const Recipe& r, Checker& checker) {
  VisitRecipeFields(r, checker.Ranges("recipe"));
  checker.Expect(r.warmup_tokens < r.total_tokens, "recipe.warmup_tokens",
                 absl::StrCat("less than total_tokens, ", r.total_tokens),
                 absl::StrCat(r.warmup_tokens));
  checker.Expect((r.spike_halt_events > 0) == (r.spike_halt_steps > 0), "recipe.spike_halt_steps",
                 r.spike_halt_events > 0 ? "at least 1, as spike_halt_events is"
                                         : "0, as spike_halt_events is",
                 absl::StrCat(r.spike_halt_steps));
}

void CheckBatch(const RunManifest& manifest, Checker& checker) {
  checker.Expect(!manifest.batch.empty() && manifest.batch.size() <= kBatchPhasesMax, "batch",
                 absl::StrCat("1 to ", kBatchPhasesMax, " phases"),
                 absl::StrCat(manifest.batch.size()));
  if (!checker.ok()) return;
  const int64_t unit = manifest.topology.ranks() * manifest.topology.micro_batch;
  int64_t before = 0;
  for (size_t i = 0; i < manifest.batch.size(); ++i) {
    const BatchPhaseConfig& phase = manifest.batch[i];
    const std::string part = absl::StrCat("batch[", i, "]");
    VisitBatchFields(phase, checker.Ranges(part));
    checker.Expect(phase.windows_per_step % unit == 0, absl::StrCat(part, ".windows_per_step"),
                   absl::StrCat("a multiple of replicas * shards * micro_batch, ", unit),
                   absl::StrCat(phase.windows_per_step));
    checker.Expect(phase.until_tokens > before, absl::StrCat(part, ".until_tokens"),
                   absl::StrCat("more than the phase before has, ", before),
                   absl::StrCat(phase.until_tokens));
    before = phase.until_tokens;
  }
  checker.Expect(before <= manifest.recipe.total_tokens, "recipe.total_tokens",
                 absl::StrCat("at least the last phase's until_tokens, ", before),
                 absl::StrCat(manifest.recipe.total_tokens));
}

// Every index that a block's linear layer and its two gradients sum over: input channels, output
// channels, tokens of a micro-batch.
void CheckSums(const RunManifest& manifest, Checker& checker) {
  const ModelConfig& m = manifest.model;
  const int64_t tokens = manifest.topology.micro_batch * m.seq_len;
  checker.Expect(tokens <= kMicroBatchTokensMax, "topology.micro_batch",
                 absl::StrCat("at most ", kMicroBatchTokensMax, " tokens in a micro-batch"),
                 absl::StrCat(tokens));
  if (manifest.precision != Precision::kInt8) return;
  const std::pair<const char*, int64_t> sums[] = {
      {"model.width", m.width},
      {"model.query_heads and kv_heads, times head_dim", m.qkv_width()},
      {"model.ffn_width, gate and up", 2 * m.ffn_width},
      {"topology.micro_batch, times seq_len", tokens}};
  for (const auto& [name, depth] : sums) {
    checker.Expect(depth <= kInt8DepthMax, name,
                   absl::StrCat("at most ", kInt8DepthMax, " summed in int8"), absl::StrCat(depth));
  }
}

// For the Visit...Fields functions.
auto WriteTo(nlohmann::json& json) {
  return [&json](const auto& field, const auto& value) { json[field.name] = value; };
}

auto ReadFrom(JsonReader& reader) {
  return [&reader](const auto& field, auto& value) {
    if constexpr (std::is_same_v<decltype(value), int64_t&>) {
      value = reader.Integer(field.name, field.least, field.most);
    } else {
      value = reader.Number(field.name, field.least, field.most);
    }
  };
}

void ReadConstant(JsonReader& reader, const char* key, absl::string_view expected) {
  const std::string found = reader.String(key, 64);
  if (reader.ok() && found != expected) {
    reader.Fail(key, absl::StrCat("\"", expected, "\""), absl::StrCat("\"", found, "\""));
  }
}

template <typename Enum>
Enum ReadWord(JsonReader& reader, const char* key, const char* (*name)(Enum), Enum a, Enum b) {
  const std::string word = reader.String(key, 16);
  if (word == name(a)) return a;
  if (word == name(b)) return b;
  if (reader.ok()) {
    reader.Fail(key, absl::StrCat("\"", name(a), "\" or \"", name(b), "\""),
                absl::StrCat("\"", word, "\""));
  }
  return a;
}

std::vector<BatchPhaseConfig> ReadBatch(JsonReader& reader) {
  std::vector<BatchPhaseConfig> batch;
  for (const nlohmann::json& item : reader.Array("batch", kBatchPhasesMax)) {
    JsonReader phase(item, absl::StrCat(reader.where(), ".batch[", batch.size(), "]"));
    VisitBatchFields(batch.emplace_back(), ReadFrom(phase));
    reader.Join(phase.Finish());
  }
  return batch;
}

ParentSegment ReadParent(JsonReader& reader) {
  JsonReader parent(reader.Object("parent"), absl::StrCat(reader.where(), ".parent"));
  const ParentSegment segment = {.run_id = parent.Sha256Digest("run_id"),
                                 .step = parent.Integer("step", 1, kTokensMax),
                                 .tokens = parent.Integer("tokens", 1, kTokensMax),
                                 .chain = parent.Sha256Digest("chain")};
  reader.Join(parent.Finish());
  return segment;
}

}  // namespace

const char* PrecisionName(Precision precision) {
  return precision == Precision::kInt8 ? "int8" : "bf16";
}

const char* ParameterStorageName(ParameterStorage storage) {
  return storage == ParameterStorage::kBf16 ? "bf16" : "f32";
}

std::string EncodeRunManifest(const RunManifest& manifest) {
  nlohmann::json json = {{"corpus", manifest.corpus.ToHex()},
                         {"format", kFormat},
                         {"name", manifest.name},
                         {"numerics", manifest.numerics},
                         {"parameter_storage", ParameterStorageName(manifest.parameter_storage)},
                         {"precision", PrecisionName(manifest.precision)},
                         {"tokenizer", manifest.tokenizer.ToHex()},
                         {"version", kVersion},
                         {kCheckpointEveryField.name, manifest.checkpoint_every},
                         {kSeedField.name, manifest.seed}};
  VisitModelFields(manifest.model, WriteTo(json["model"]));
  VisitRecipeFields(manifest.recipe, WriteTo(json["recipe"]));
  VisitTopologyFields(manifest.topology, WriteTo(json["topology"]));
  json["batch"] = nlohmann::json::array();
  for (const BatchPhaseConfig& phase : manifest.batch) {
    VisitBatchFields(phase, WriteTo(json["batch"].emplace_back()));
  }
  if (manifest.parent.has_value()) {
    json["parent"] = {{"chain", manifest.parent->chain.ToHex()},
                      {"run_id", manifest.parent->run_id.ToHex()},
                      {"step", manifest.parent->step},
                      {"tokens", manifest.parent->tokens}};
  }
  absl::StatusOr<std::string> text = CanonicalJson(json);
  LOCKSTEP_CHECK(text.ok(), "{}", text.status());
  return *std::move(text);
}

absl::StatusOr<RunManifest> ParseRunManifest(absl::string_view text) {
  if (text.size() > kRunManifestBytesMax) {
    return absl::DataLossError(absl::StrCat("run manifest: expected at most ", kRunManifestBytesMax,
                                            " bytes; found ", text.size()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), "run manifest");
  JsonReader reader(json, "run manifest");
  ReadConstant(reader, "format", kFormat);
  reader.Integer("version", kVersion, kVersion);
  RunManifest manifest;
  manifest.name = reader.String("name", kRunNameBytesMax);
  manifest.numerics = reader.String("numerics", 64);
  manifest.precision =
      ReadWord(reader, "precision", PrecisionName, Precision::kInt8, Precision::kBf16);
  manifest.parameter_storage = ReadWord(reader, "parameter_storage", ParameterStorageName,
                                        ParameterStorage::kBf16, ParameterStorage::kF32);
  manifest.corpus = reader.Sha256Digest("corpus");
  manifest.tokenizer = reader.Sha256Digest("tokenizer");
  const auto integer = [&](const IntegerField& field) {
    return reader.Integer(field.name, field.least, field.most);
  };
  manifest.checkpoint_every = integer(kCheckpointEveryField);
  manifest.seed = static_cast<uint64_t>(integer(kSeedField));
  const auto part = [&](const char* key, auto visit) {
    JsonReader fields(reader.Object(key), absl::StrCat("run manifest.", key));
    visit(ReadFrom(fields));
    reader.Join(fields.Finish());
  };
  part("model", [&](auto read) { VisitModelFields(manifest.model, read); });
  part("recipe", [&](auto read) { VisitRecipeFields(manifest.recipe, read); });
  part("topology", [&](auto read) { VisitTopologyFields(manifest.topology, read); });
  manifest.batch = ReadBatch(reader);
  if (reader.Has("parent")) manifest.parent = ReadParent(reader);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  if (const absl::Status valid = ValidateRunManifest(manifest); !valid.ok()) {
    return absl::DataLossError(valid.message());
  }
  return manifest;
}

absl::Status ValidateRunManifest(const RunManifest& manifest) {
  Checker checker;
  checker.Expect(IsRunName(manifest.name), "name",
                 "up to 64 of a-z, 0-9, '.', '_' and '-', the first one a letter or digit",
                 absl::StrCat("\"", manifest.name, "\""));
  checker.Expect(manifest.numerics == kNumericsVersion, "numerics",
                 absl::StrCat("\"", kNumericsVersion,
                              "\", which this build follows (a run needs a build of its own)"),
                 absl::StrCat("\"", manifest.numerics, "\""));
  checker.Range("", kCheckpointEveryField, manifest.checkpoint_every);
  checker.Expect(manifest.seed <= static_cast<uint64_t>(kSeedField.most), kSeedField.name,
                 absl::StrCat("an integer from 0 to ", kSeedField.most),
                 absl::StrCat(manifest.seed));
  CheckModel(manifest.model, checker);
  CheckRecipe(manifest.recipe, checker);
  VisitTopologyFields(manifest.topology, checker.Ranges("topology"));
  if (!checker.ok()) return checker.Take();  // What follows multiplies.
  CheckBatch(manifest, checker);
  CheckSums(manifest, checker);
  if (manifest.parent.has_value()) {
    const int64_t step = manifest.parent->step;
    checker.Expect(step >= 1 && step <= kTokensMax, "parent.step",
                   absl::StrCat("an integer from 1 to ", kTokensMax), absl::StrCat(step));
    const int64_t tokens = manifest.parent->tokens;
    checker.Expect(tokens >= 1 && tokens <= kTokensMax && manifest.model.seq_len > 0 &&
                       tokens % manifest.model.seq_len == 0,
                   "parent.tokens", "a multiple of model.seq_len", absl::StrCat(tokens));
  }
  return checker.Take();
}

Digest RunIdOf(const RunManifest& manifest) { return Sha256(AsBytes(EncodeRunManifest(manifest))); }

}  // namespace lockstep::audit
