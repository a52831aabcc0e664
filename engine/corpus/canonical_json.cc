// SPDX-License-Identifier: Apache-2.0
//
// Canonical JSON by nlohmann's parser: what it prints of what it read must be the text.
#include "engine/corpus/canonical_json.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::engine {
namespace {

constexpr int kDepthMax = 16;

// Brackets outside strings, so that nothing recursive ever sees a deep text.
bool TooDeep(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

const nlohmann::json& EmptyArray() {
  static const auto* const empty = new nlohmann::json(nlohmann::json::array());
  return *empty;
}

const nlohmann::json& EmptyObject() {
  static const auto* const empty = new nlohmann::json(nlohmann::json::object());
  return *empty;
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseCanonicalJson(absl::string_view text) {
  if (TooDeep(text)) {
    return absl::DataLossError(
        absl::StrCat("expected JSON at most ", kDepthMax, " deep; found deeper"));
  }
  nlohmann::json json =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return absl::DataLossError("expected a JSON object; found something else, or a cut-off one");
  }
  const std::string canonical = json.dump();
  if (canonical == text) return json;
  size_t at = 0;
  while (at < text.size() && at < canonical.size() && text[at] == canonical[at]) ++at;
  return absl::DataLossError(absl::StrCat(
      "expected canonical JSON (sorted keys, each once, no white space); byte ", at, " differs"));
}

JsonReader::JsonReader(const nlohmann::json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object())
    status_ = absl::DataLossError(absl::StrCat(where_, ": expected an object"));
}

const nlohmann::json* JsonReader::Find(const char* key, absl::string_view expected) {
  asked_.insert(key);
  if (!status_.ok()) return nullptr;
  const auto found = json_.find(key);
  if (found != json_.end()) return &*found;
  Fail(key, expected, "nothing");
  return nullptr;
}

int64_t JsonReader::Integer(const char* key, int64_t least, int64_t most) {
  const std::string expected = absl::StrCat("an integer from ", least, " to ", most);
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return least;
  const bool fits =
      value->is_number_integer() &&
      !(value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  if (fits && value->get<int64_t>() >= least && value->get<int64_t>() <= most)
    return value->get<int64_t>();
  Fail(key, expected, fits ? absl::StrCat(value->get<int64_t>()) : value->type_name());
  return least;
}

std::string JsonReader::String(const char* key, size_t bytes_max) {
  const std::string expected = absl::StrCat("a string of at most ", bytes_max, " bytes");
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return "";
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() <= bytes_max) return text;
    Fail(key, expected, absl::StrCat(text.size(), " bytes"));
  } else {
    Fail(key, expected, value->type_name());
  }
  return "";
}

Digest JsonReader::Sha256Digest(const char* key) {
  const std::string text = String(key, 64);
  if (!status_.ok()) return {};
  const absl::StatusOr<Digest> digest = Digest::FromHex(text);
  if (digest.ok() && digest->ToHex() == text) return *digest;
  Fail(key, "64 lower-case hexadecimal digits", "something else");
  return {};
}

const nlohmann::json& JsonReader::Array(const char* key, size_t items_max) {
  const std::string expected = absl::StrCat("an array of at most ", items_max, " items");
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return EmptyArray();
  if (value->is_array() && value->size() <= items_max) return *value;
  Fail(key, expected,
       value->is_array() ? absl::StrCat(value->size(), " items") : value->type_name());
  return EmptyArray();
}

const nlohmann::json& JsonReader::Object(const char* key) {
  const nlohmann::json* value = Find(key, "an object");
  if (value == nullptr) return EmptyObject();
  if (value->is_object()) return *value;
  Fail(key, "an object", value->type_name());
  return EmptyObject();
}

void JsonReader::Fail(absl::string_view key, absl::string_view expected, absl::string_view found) {
  Join(absl::DataLossError(
      absl::StrCat(where_, ".", key, ": expected ", expected, "; found ", found)));
}

void JsonReader::Join(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::Status JsonReader::Finish() {
  for (const auto& item : json_.items()) {
    if (!status_.ok()) break;
    if (!asked_.contains(item.key())) Fail(item.key(), "no such key", "one");
  }
  return status_;
}

}  // namespace lockstep::engine
