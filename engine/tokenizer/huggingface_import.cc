// SPDX-License-Identifier: Apache-2.0
//
// Hugging Face's tokenizer.json, read: first whether the JSON is harmless, then whether each part
// does what ours does, then the vocabulary, last whether its merges are those that the vocabulary
// implies.
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/formats.h"
#include "engine/tokenizer/merger.h"
#include "engine/tokenizer/splitter.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using nlohmann::json;

constexpr int kDepthMax = 16;
constexpr int64_t kValuesMax = 8 * kVocabularyMax;

// Reads JSON without building anything: that it is well formed, not nested too deep, not of too
// many values, and has no key twice.
class Checker : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(size_t) override { return Open(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    return Fail(
        absl::StrCat("the key \"", absl::CHexEscape(name.substr(0, 60)), "\" is there twice"));
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    return Fail(absl::StrCat("the JSON is malformed at byte ", position));
  }
  const std::string& error() const { return error_; }

 private:
  bool Value() {
    return ++values_ <= kValuesMax || Fail(absl::StrCat("more than ", kValuesMax, " JSON values"));
  }
  bool Open() {
    keys_.emplace_back();
    if (keys_.size() > kDepthMax) return Fail(absl::StrCat("JSON nested deeper than ", kDepthMax));
    return Value();
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }
  bool Fail(std::string what) {
    error_ = std::move(what);
    return false;
  }

  std::vector<absl::flat_hash_set<std::string>> keys_;
  int64_t values_ = 0;
  std::string error_;
};

absl::StatusOr<json> ParseSafely(absl::string_view bytes) {
  Checker checker;
  if (!json::sax_parse(bytes.begin(), bytes.end(), &checker)) {
    return absl::DataLossError(checker.error());
  }
  json parsed = json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return absl::DataLossError("expected a JSON object");
  return parsed;
}

const json& At(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto at = object.find(key);
  return at == object.end() ? kNull : *at;
}

// What a message shows of a value.
std::string Show(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 120);
}

absl::Status ExpectNothing(const json& object, const char* key) {
  const json& value = At(object, key);
  if (value.is_null() || value == json("") || value == json(false)) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("expected no ", key, ", found ", Show(value), "; it would change the ids"));
}

absl::Status CheckPreTokenizer(const json& pre_tokenizer) {
  const json& parts = At(pre_tokenizer, "pretokenizers");
  if (At(pre_tokenizer, "type") == "Sequence" && parts.is_array() && parts.size() == 2) {
    const json& split = parts[0];
    const json& bytes = parts[1];
    if (At(split, "type") == "Split" &&
        At(At(split, "pattern"), "Regex") == std::string(kSplitPattern) &&
        At(split, "behavior") == "Isolated" && At(split, "invert") != true &&
        At(bytes, "type") == "ByteLevel" && At(bytes, "add_prefix_space") == false &&
        At(bytes, "use_regex") == false) {
      return absl::OkStatus();
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      "expected the pre_tokenizer to be Split by the Llama-3 pattern (Isolated), then ByteLevel "
      "(add_prefix_space false, use_regex false), found ",
      Show(pre_tokenizer)));
}

// The special tokens by id.
absl::StatusOr<std::vector<std::pair<int64_t, std::string>>> ReadAddedTokens(const json& added) {
  std::vector<std::pair<int64_t, std::string>> tokens;
  if (added.is_null()) return tokens;
  if (!added.is_array()) return absl::DataLossError("added_tokens: expected an array");
  for (const json& entry : added) {
    const json& id = At(entry, "id");
    const json& content = At(entry, "content");
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kVocabularyMax || !content.is_string()) {
      return absl::DataLossError(absl::StrCat("added_tokens: expected an id below ", kVocabularyMax,
                                              " and a content, found ", Show(entry)));
    }
    tokens.emplace_back(id.get<int64_t>(), content.get<std::string>());
  }
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

// model.vocab without what is among the added tokens: entry i of the result has id i.
absl::StatusOr<std::vector<std::string>> ReadTokens(
    const json& vocab, const std::vector<std::pair<int64_t, std::string>>& added) {
  if (!vocab.is_object()) return absl::DataLossError("model.vocab: expected an object");
  const std::set<std::pair<int64_t, std::string>> special(added.begin(), added.end());
  std::vector<std::optional<std::string>> tokens(vocab.size());
  size_t ordinary = 0;
  for (const auto& [text, id] : vocab.items()) {
    const auto error = [&text = text](absl::string_view what) {
      return absl::DataLossError(absl::StrCat("model.vocab: token \"",
                                              absl::CHexEscape(text.substr(0, 100)), "\" ", what));
    };
    if (!id.is_number_unsigned()) return error("has no number for an id");
    if (special.count({static_cast<int64_t>(std::min(id.get<uint64_t>(), uint64_t{kVocabularyMax})),
                       text}) > 0)
      continue;
    std::optional<std::string> bytes = ByteLevelDecode(text);
    if (!bytes) return error("is not written in ByteLevel's alphabet");
    const auto at = id.get<uint64_t>();
    if (at >= tokens.size() || tokens[at].has_value()) {
      return error(
          absl::StrCat("has id ", at, "; expected each of 0, 1, 2, ... once, special tokens last"));
    }
    tokens[at] = std::move(bytes);
    ++ordinary;
  }
  std::vector<std::string> result;
  for (size_t id = 0; id < ordinary; ++id) {
    if (!tokens[id]) {
      return absl::DataLossError(
          absl::StrCat("model.vocab: no token has id ", id,
                       "; expected each of 0, 1, 2, ... once, special tokens last"));
    }
    result.push_back(*std::move(tokens[id]));
  }
  return result;
}

// Both halves of a merge, "a b" or ["a", "b"], as bytes.
std::optional<std::pair<std::string, std::string>> ReadMerge(const json& merge) {
  std::string left;
  std::string right;
  if (merge.is_string()) {
    const std::string& text = merge.get_ref<const std::string&>();
    const size_t blank = text.find(' ');
    if (blank == std::string::npos) return std::nullopt;
    left = text.substr(0, blank);
    right = text.substr(blank + 1);
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    left = merge[0].get<std::string>();
    right = merge[1].get<std::string>();
  } else {
    return std::nullopt;
  }
  std::optional<std::string> left_bytes = ByteLevelDecode(left);
  std::optional<std::string> right_bytes = ByteLevelDecode(right);
  if (!left_bytes || !right_bytes) return std::nullopt;
  return std::make_pair(*std::move(left_bytes), *std::move(right_bytes));
}

// Whether merging by the file's list and by our rule is the same: every listed pair makes a token,
// in the order of those tokens' ids, and every pair that our rule can meet is listed.
absl::Status CheckMerges(const json& merges, bool ignore_merges,
                         const std::vector<std::string>& tokens) {
  if (!merges.is_array()) return absl::DataLossError("model.merges: expected an array");
  absl::flat_hash_map<absl::string_view, int32_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], static_cast<int32_t>(id));
  absl::flat_hash_set<std::pair<int32_t, int32_t>> listed;
  int32_t last = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto halves = ReadMerge(merges[i]);
    const auto error = [&](absl::string_view what) {
      return absl::DataLossError(
          absl::StrCat("model.merges: merge ", i, ", ", Show(merges[i]), ", ", what));
    };
    if (!halves) return error("is not two texts in ByteLevel's alphabet");
    const auto left = ids.find(halves->first);
    const auto right = ids.find(halves->second);
    const auto made = ids.find(absl::StrCat(halves->first, halves->second));
    if (left == ids.end() || right == ids.end() || made == ids.end()) {
      return error("is of tokens, or makes one, that model.vocab does not have");
    }
    if (made->second < last) {
      return error(absl::StrCat("makes token ", made->second, " after one of id ", last,
                                "; expected merges in the order of the ids that they make"));
    }
    last = made->second;
    listed.emplace(left->second, right->second);
  }
  const Merger merger(tokens);
  for (size_t id = 256; id < tokens.size(); ++id) {
    const std::pair<int32_t, int32_t> pair = merger.PairOf(static_cast<int32_t>(id));
    if (pair.first < 0 ? ignore_merges : listed.contains(pair)) continue;
    return absl::DataLossError(
        absl::StrCat("model.merges: no merge makes token ", id, ", \"",
                     absl::CHexEscape(tokens[id].substr(0, 100)), "\", of its parts",
                     pair.first < 0 ? ", and ignore_merges is not true" : ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Vocabulary> ImportHuggingFace(absl::string_view bytes,
                                             absl::string_view end_of_text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json file, ParseSafely(bytes));
  LOCKSTEP_RETURN_IF_ERROR(ExpectNothing(file, "normalizer"));
  LOCKSTEP_RETURN_IF_ERROR(CheckPreTokenizer(At(file, "pre_tokenizer")));
  const json& model = At(file, "model");
  if (At(model, "type") != "BPE") {
    return absl::UnimplementedError(
        absl::StrCat("expected a model of type BPE, found ", Show(At(model, "type"))));
  }
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                          "byte_fallback"}) {
    LOCKSTEP_RETURN_IF_ERROR(ExpectNothing(model, key));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto added, ReadAddedTokens(At(file, "added_tokens")));
  Vocabulary v;
  LOCKSTEP_ASSIGN_OR_RETURN(v.tokens, ReadTokens(At(model, "vocab"), added));
  for (const auto& [id, name] : added) {
    if (id != v.size()) {
      return absl::DataLossError(
          absl::StrCat("added_tokens: \"", absl::CHexEscape(name.substr(0, 100)), "\" has id ", id,
                       "; expected ", v.size(), ": added tokens follow the others without gaps"));
    }
    v.special_tokens.push_back(name);
  }
  v.end_of_text = AddSpecialToken(end_of_text, &v);
  if (absl::Status status = ValidateVocabulary(v); !status.ok()) {
    return absl::DataLossError(status.message());
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckMerges(At(model, "merges"), At(model, "ignore_merges") == true, v.tokens));
  return v;
}

}  // namespace lockstep::engine
