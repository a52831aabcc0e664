// SPDX-License-Identifier: Apache-2.0
//
// Corpus manifests: the canonical bytes, a strict reader, and the rules. See manifest.h.
#include "engine/data/manifest.h"

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/bytes.h"
#include "base/status.h"
#include "engine/data/shard_index.h"

namespace lockstep::engine {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 4> kFileKeys = {"tokens", "index", "names", "chunks"};
constexpr std::array<const char*, 4> kExtensions = {".tokens", ".index", ".names", ".chunks"};
// Beyond what any corpus has, so that sums stay far from 2^64.
constexpr size_t kSourcesMax = 4096;
constexpr size_t kShardsMax = size_t{1} << 20;
constexpr uint64_t kTextBytesMax = uint64_t{1} << 62;
// Nothing in a manifest lies deeper, and what is deeper is not even read.
constexpr int kDepthMax = 8;

Json ShardToJson(const ShardEntry& shard) {
  Json json;
  for (ShardFile which : kShardFiles) {
    const FileEntry& file = shard.file(which);
    json[kFileKeys[static_cast<int>(which)]] = {{"bytes", file.bytes},
                                                {"sha256", file.sha256.ToHex()}};
  }
  json["tokens"]["count"] = shard.tokens;
  json["tokens"]["root"] = shard.root.ToHex();
  json["documents"] = shard.documents;
  return json;
}

Json SourceToJson(const SourceEntry& source) {
  Json shards = Json::array();
  for (const ShardEntry& shard : source.shards) shards.push_back(ShardToJson(shard));
  return {{"documents", source.documents},
          {"licence", source.licence},
          {"name", source.name},
          {"shards", std::move(shards)},
          {"share", source.share},
          {"store", source.store.ToHex()},
          {"text_bytes", source.text_bytes},
          {"tokens", source.tokens}};
}

// Reads fields of objects, and remembers the first that is missing or of another kind.
class Fields {
 public:
  Fields(const Json& json, std::string where, absl::Status* status)
      : json_(json), where_(std::move(where)), status_(*status) {
    if (!json.is_object()) Fail("", "an object");
  }

  uint64_t Integer(const char* key, uint64_t max) {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_number_unsigned() || value->get<uint64_t>() > max) {
      Fail(key, absl::StrCat("an integer of at most ", max));
      return 0;
    }
    return value->get<uint64_t>();
  }

  std::string Text(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_string()) {
      Fail(key, "a string");
      return "";
    }
    return value->get<std::string>();
  }

  Digest Hash(const char* key) {
    absl::StatusOr<Digest> digest = Digest::FromHex(Text(key));
    if (!digest.ok()) {
      Fail(key, "64 hexadecimal digits");
      return {};
    }
    return *digest;
  }

  // An empty array or object stands for what is missing.
  const Json& Array(const char* key, size_t size_max) {
    static const Json kEmpty = Json::array();
    const Json* value = Find(key);
    if (value == nullptr || !value->is_array() || value->size() > size_max) {
      Fail(key, absl::StrCat("an array of at most ", size_max));
      return kEmpty;
    }
    return *value;
  }
  const Json& Object(const char* key) {
    static const Json kEmpty = Json::object();
    const Json* value = Find(key);
    return value == nullptr ? kEmpty : *value;
  }

  std::string Below(const char* key) const { return absl::StrCat(where_, "/", key); }

 private:
  const Json* Find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto at = json_.find(key);
    return at == json_.end() ? nullptr : &*at;
  }
  void Fail(const char* key, absl::string_view expected) {
    if (!status_.ok()) return;
    status_ = absl::DataLossError(absl::StrCat("field ", *key == '\0' ? where_ : Below(key),
                                               ": expected ", expected, ", found something else"));
  }

  const Json& json_;
  const std::string where_;
  absl::Status& status_;
};

ShardEntry ShardFromJson(const Json& json, const std::string& where, absl::Status* status) {
  ShardEntry shard;
  Fields fields(json, where, status);
  shard.documents = fields.Integer("documents", kShardTokensMax);
  for (ShardFile which : kShardFiles) {
    const char* key = kFileKeys[static_cast<int>(which)];
    Fields file(fields.Object(key), fields.Below(key), status);
    shard.file(which).bytes = file.Integer("bytes", kTextBytesMax);
    shard.file(which).sha256 = file.Hash("sha256");
    if (which == ShardFile::kTokens) {
      shard.tokens = file.Integer("count", kShardTokensMax);
      shard.root = file.Hash("root");
    }
  }
  return shard;
}

SourceEntry SourceFromJson(const Json& json, const std::string& where, absl::Status* status) {
  SourceEntry source;
  Fields fields(json, where, status);
  source.name = fields.Text("name");
  source.licence = fields.Text("licence");
  source.store = fields.Hash("store");
  source.text_bytes = fields.Integer("text_bytes", kTextBytesMax);
  source.documents = fields.Integer("documents", kTextBytesMax);
  source.tokens = fields.Integer("tokens", kTextBytesMax);
  source.share = fields.Integer("share", kShareMax);
  const Json& shards = fields.Array("shards", kShardsMax);
  source.shards.reserve(shards.size());
  for (const Json& shard : shards) {
    source.shards.push_back(
        ShardFromJson(shard, absl::StrCat(where, "/shards/", source.shards.size()), status));
  }
  return source;
}

// Reads JSON and keeps nothing of it: finds where it stops being JSON, or becomes too deep.
class JsonCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kDepthMax; }
  bool start_array(std::size_t) override { return ++depth_ <= kDepthMax; }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    position_ = position;
    return false;
  }

  absl::Status status() const {
    if (depth_ > kDepthMax) {
      return absl::DataLossError(
          absl::StrCat("expected JSON at most ", kDepthMax, " levels deep, found more"));
    }
    // The parser counts from 1.
    return absl::DataLossError(absl::StrCat("offset ", position_ > 0 ? position_ - 1 : 0,
                                            ": expected JSON, found other bytes"));
  }

 private:
  int depth_ = 0;
  size_t position_ = 0;
};

absl::StatusOr<Json> ParseJson(absl::string_view bytes) {
  JsonCheck check;
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &check)) return check.status();
  return Json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
}

// The first byte at which what was read is not what this program would write.
absl::Status ExpectCanonical(absl::string_view found, absl::string_view expected) {
  if (found == expected) return absl::OkStatus();
  size_t at = 0;
  while (at < found.size() && at < expected.size() && found[at] == expected[at]) ++at;
  return absl::DataLossError(
      absl::StrCat("offset ", at,
                   ": expected the canonical form (sorted keys, no white space, no other field)"));
}

absl::Status ValidateShard(const ShardEntry& shard, uint32_t token_bytes, uint64_t chunk_bytes) {
  const auto expect = [&](ShardFile which, uint64_t bytes) {
    const uint64_t found = shard.file(which).bytes;
    if (found == bytes) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("the ", kFileKeys[static_cast<int>(which)],
                                            " file: expected ", bytes, " bytes, found ", found));
  };
  if (shard.documents < 1 || shard.documents > shard.tokens || shard.tokens > kShardTokensMax) {
    return absl::DataLossError(
        absl::StrCat("expected 1 <= documents <= tokens <= ", kShardTokensMax, ", found ",
                     shard.documents, " documents, ", shard.tokens, " tokens"));
  }
  const uint64_t token_file = shard.tokens * token_bytes;
  LOCKSTEP_RETURN_IF_ERROR(expect(ShardFile::kTokens, token_file));
  LOCKSTEP_RETURN_IF_ERROR(
      expect(ShardFile::kChunks, ChunkCount(token_file, chunk_bytes) * sizeof(Digest)));
  LOCKSTEP_RETURN_IF_ERROR(expect(ShardFile::kIndex, ShardIndexBytes(shard.documents)));
  const uint64_t names = shard.file(ShardFile::kNames).bytes;
  const uint64_t names_min = ShardNamesBytes(shard.documents, 0);
  if (names < names_min || names > names_min + kShardNamesBytesMax) {
    return absl::DataLossError(absl::StrCat("the names file: expected ", names_min, " to ",
                                            names_min + kShardNamesBytesMax, " bytes, found ",
                                            names));
  }
  return absl::OkStatus();
}

absl::Status ValidateSource(const SourceEntry& source, const CorpusManifest& manifest) {
  if (!IsSourceName(source.name)) {
    return absl::DataLossError(
        "its name: expected 1 to 64 letters, digits, _, - or (not first) dots, and not "
        "manifest.json");
  }
  if (source.share > kShareMax || source.shards.size() > kShardsMax) {
    return absl::DataLossError(
        absl::StrCat("expected a share of at most 2^56 and at most ", kShardsMax, " shards"));
  }
  uint64_t documents = 0, tokens = 0;
  for (size_t i = 0; i < source.shards.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        ValidateShard(source.shards[i], manifest.token_bytes, manifest.chunk_bytes), "shard ", i);
    documents += source.shards[i].documents;
    tokens += source.shards[i].tokens;
  }
  if (documents != source.documents || tokens != source.tokens) {
    return absl::DataLossError(absl::StrCat("its shards have ", documents, " documents and ",
                                            tokens, " tokens, it says ", source.documents, " and ",
                                            source.tokens));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsSourceName(absl::string_view name) {
  if (name.empty() || name.size() > 64 || name[0] == '.' || name == kCorpusManifestFile) {
    return false;
  }
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '-' && c != '.') return false;
  }
  return true;
}

uint32_t TokenBytes(uint32_t vocab_size) { return vocab_size <= 65536 ? 2 : 4; }

std::string ShardFileName(absl::string_view source, uint64_t shard, ShardFile which) {
  return absl::StrCat(source, "/", absl::Dec(shard, absl::kZeroPad5),
                      kExtensions[static_cast<int>(which)]);
}

uint64_t ChunkCount(uint64_t token_file_bytes, uint64_t chunk_bytes) {
  return token_file_bytes / chunk_bytes + (token_file_bytes % chunk_bytes != 0);
}

std::string SerializeManifest(const CorpusManifest& manifest) {
  Json sources = Json::array();
  for (const SourceEntry& source : manifest.sources) sources.push_back(SourceToJson(source));
  const Json json = {
      {"chunk_bytes", manifest.chunk_bytes},
      {"format", kCorpusFormat},
      {"separator", manifest.separator},
      {"shard_tokens", manifest.shard_tokens},
      {"sources", std::move(sources)},
      {"token_bytes", manifest.token_bytes},
      {"tokenizer", {{"sha256", manifest.tokenizer.ToHex()}, {"vocab_size", manifest.vocab_size}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string SerializeShardEntry(const ShardEntry& shard) { return ShardToJson(shard).dump(); }

absl::StatusOr<CorpusManifest> ParseCorpusManifest(absl::string_view bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ParseJson(bytes));
  absl::Status status;
  Fields fields(json, "", &status);
  const std::string format = fields.Text("format");
  if (status.ok() && format != kCorpusFormat) {
    return absl::DataLossError(absl::StrCat("format: expected ", kCorpusFormat, ", found another"));
  }
  CorpusManifest manifest;
  manifest.chunk_bytes = fields.Integer("chunk_bytes", kTextBytesMax);
  manifest.separator = static_cast<uint32_t>(fields.Integer("separator", INT32_MAX));
  manifest.shard_tokens = fields.Integer("shard_tokens", kShardTokensMax);
  manifest.token_bytes = static_cast<uint32_t>(fields.Integer("token_bytes", 4));
  Fields tokenizer(fields.Object("tokenizer"), fields.Below("tokenizer"), &status);
  manifest.tokenizer = tokenizer.Hash("sha256");
  manifest.vocab_size = static_cast<uint32_t>(tokenizer.Integer("vocab_size", INT32_MAX));
  for (const Json& source : fields.Array("sources", kSourcesMax)) {
    manifest.sources.push_back(
        SourceFromJson(source, absl::StrCat("/sources/", manifest.sources.size()), &status));
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  LOCKSTEP_RETURN_IF_ERROR(ValidateManifest(manifest));
  LOCKSTEP_RETURN_IF_ERROR(ExpectCanonical(bytes, SerializeManifest(manifest)));
  return manifest;
}

absl::StatusOr<ShardEntry> ParseShardEntry(absl::string_view bytes, uint32_t token_bytes,
                                           uint64_t chunk_bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ParseJson(bytes));
  absl::Status status;
  const ShardEntry shard = ShardFromJson(json, "", &status);
  LOCKSTEP_RETURN_IF_ERROR(status);
  LOCKSTEP_RETURN_IF_ERROR(ValidateShard(shard, token_bytes, chunk_bytes));
  LOCKSTEP_RETURN_IF_ERROR(ExpectCanonical(bytes, SerializeShardEntry(shard)));
  return shard;
}

absl::Status ValidateManifest(const CorpusManifest& manifest) {
  const uint64_t chunk = manifest.chunk_bytes;
  if (!std::has_single_bit(chunk) || chunk < 4096 || chunk > (16u << 20)) {
    return absl::DataLossError(
        absl::StrCat("chunk_bytes: expected a power of two, 4096 to 16777216, found ", chunk));
  }
  if (manifest.vocab_size < 1 || manifest.vocab_size > INT32_MAX ||
      manifest.separator >= manifest.vocab_size) {
    return absl::DataLossError(absl::StrCat("expected separator < vocab_size <= 2147483647, found ",
                                            manifest.separator, " and ", manifest.vocab_size));
  }
  if (manifest.token_bytes != TokenBytes(manifest.vocab_size)) {
    return absl::DataLossError(
        absl::StrCat("token_bytes: expected ", TokenBytes(manifest.vocab_size), " for ",
                     manifest.vocab_size, " tokens, found ", manifest.token_bytes));
  }
  if (manifest.shard_tokens < 1 || manifest.shard_tokens > kShardTokensMax) {
    return absl::DataLossError(absl::StrCat("shard_tokens: expected 1 to ", kShardTokensMax,
                                            ", found ", manifest.shard_tokens));
  }
  if (manifest.sources.size() > kSourcesMax) {
    return absl::DataLossError(absl::StrCat("expected at most ", kSourcesMax, " sources"));
  }
  for (size_t i = 0; i < manifest.sources.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(ValidateSource(manifest.sources[i], manifest), "source ", i);
    if (i > 0 && manifest.sources[i].name <= manifest.sources[i - 1].name) {
      return absl::DataLossError(
          absl::StrCat("source ", i, ": expected names in ascending order, each once"));
    }
  }
  return absl::OkStatus();
}

Digest ManifestDigest(const CorpusManifest& manifest) {
  return Sha256(AsBytes(SerializeManifest(manifest)));
}

absl::Status CheckManifestDigest(absl::string_view bytes, const Digest& expected) {
  const Digest found = Sha256(AsBytes(bytes));
  if (found == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expected a corpus manifest with the digest ",
                                          expected.ToHex(), ", found ", found.ToHex(),
                                          "; this is another corpus, or a damaged copy"));
}

}  // namespace lockstep::engine
