// SPDX-License-Identifier: Apache-2.0
//
// RFC 8785 over nlohmann's parser: what is printed of what was read must be the text.
#include "base/canonical_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/logging.h"

namespace lockstep {
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

// By UTF-16 code units, as section 3.2.3 has it. Where two UTF-8 texts first differ, both begin a
// character or both are within one; only the former's order can be another in UTF-16, where what
// lies above U+FFFF (0xf0 and up in UTF-8) begins with 0xd8.. and comes before U+E000 (0xee).
bool KeyLess(absl::string_view a, absl::string_view b) {
  const size_t common = std::min(a.size(), b.size());
  size_t at = 0;
  while (at < common && a[at] == b[at]) ++at;
  if (at == common) return a.size() < b.size();
  const auto rank = [](char c) {
    const int byte = static_cast<uint8_t>(c);
    return byte == 0xee || byte == 0xef ? byte + 256 : byte;
  };
  return rank(a[at]) < rank(b[at]);
}

class Printer {
 public:
  // strict: refuse integers that a binary64 may not hold, rather than print what it holds.
  explicit Printer(bool strict) : strict_(strict) {}

  void Print(const nlohmann::json& json) {
    switch (json.type()) {
      case nlohmann::json::value_t::object:
        return PrintObject(json);
      case nlohmann::json::value_t::array:
        return PrintArray(json);
      case nlohmann::json::value_t::string:
        return PrintString(json.get_ref<const std::string&>());
      case nlohmann::json::value_t::number_unsigned:
        return PrintInteger(json.get<uint64_t>());
      case nlohmann::json::value_t::number_integer:
        return PrintInteger(json.get<int64_t>());
      case nlohmann::json::value_t::number_float:
        return PrintNumber(json.get<double>());
      case nlohmann::json::value_t::boolean:
        text_ += json.get<bool>() ? "true" : "false";
        return;
      case nlohmann::json::value_t::null:
        text_ += "null";
        return;
      default:
        Fail("a JSON value", json.type_name());
    }
  }

  absl::StatusOr<std::string> Take() {
    if (!status_.ok()) return status_;
    return std::move(text_);
  }

 private:
  void PrintObject(const nlohmann::json& json) {
    using Member = std::pair<const std::string*, const nlohmann::json*>;
    std::vector<Member> members;
    members.reserve(json.size());
    for (const auto& item : json.items()) members.emplace_back(&item.key(), &item.value());
    std::sort(members.begin(), members.end(),
              [](const Member& a, const Member& b) { return KeyLess(*a.first, *b.first); });
    text_ += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) text_ += ',';
      PrintString(*members[i].first);
      text_ += ':';
      Print(*members[i].second);
    }
    text_ += '}';
  }

  void PrintArray(const nlohmann::json& json) {
    text_ += '[';
    for (size_t i = 0; i < json.size(); ++i) {
      if (i > 0) text_ += ',';
      Print(json[i]);
    }
    text_ += ']';
  }

  // nlohmann escapes what section 3.2.2.2 escapes, in its way, and throws if this is not UTF-8.
  void PrintString(const std::string& string) {
    const bool plain = std::all_of(string.begin(), string.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '\\';
    });
    if (plain) {
      absl::StrAppend(&text_, "\"", string, "\"");
      return;
    }
    try {
      text_ += nlohmann::json(string).dump();
    } catch (const nlohmann::json::exception&) {
      Fail("UTF-8", "a string that is not");
    }
  }

  template <typename Int>
  void PrintInteger(Int value) {
    const auto limit = static_cast<Int>(kJsonIntegerMax);
    bool fits = value <= limit;
    if constexpr (std::is_signed_v<Int>) fits = fits && value >= -limit;
    if (fits) {
      absl::StrAppend(&text_, value);
    } else if (strict_) {
      Fail("integers within 2^53 - 1 of 0", absl::StrCat(value));
    } else {
      PrintNumber(static_cast<double>(value));
    }
  }

  void PrintNumber(double value) {
    if (std::isfinite(value)) {
      text_ += CanonicalNumber(value);
    } else {
      Fail("finite numbers", std::isnan(value) ? "NaN" : "an infinity");
    }
  }

  void Fail(absl::string_view expected, absl::string_view found) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("canonical JSON: expected ", expected, "; found ", found));
    }
  }

  const bool strict_;
  std::string text_;
  absl::Status status_;
};

const nlohmann::json& EmptyArray() {
  static const auto* const empty = new nlohmann::json(nlohmann::json::array());
  return *empty;
}

const nlohmann::json& EmptyObject() {
  static const auto* const empty = new nlohmann::json(nlohmann::json::object());
  return *empty;
}

}  // namespace

// ECMA-262, Number::toString, with the digits of to_chars: the fewest that read back as the value,
// and of those the nearest to it.
std::string CanonicalNumber(double value) {
  LOCKSTEP_CHECK(std::isfinite(value));
  if (value == 0) return "0";
  char buffer[32];  // -d.dddddddddddddddde-ddd
  const auto printed = std::to_chars(buffer, buffer + sizeof(buffer), std::abs(value),
                                     std::chars_format::scientific);
  LOCKSTEP_CHECK(printed.ec == std::errc());
  const absl::string_view scientific(buffer, static_cast<size_t>(printed.ptr - buffer));
  const size_t e = scientific.find('e');
  std::string digits(1, scientific[0]);
  if (e > 2) absl::StrAppend(&digits, scientific.substr(2, e - 2));
  // The value is 0.DIGITS times 10^point.
  const int point = std::atoi(std::string(scientific.substr(e + 1)).c_str()) + 1;
  const int count = static_cast<int>(digits.size());
  const char* const sign = value < 0 ? "-" : "";
  if (point > 21 || point <= -6) {
    const std::string fraction = count > 1 ? absl::StrCat(".", digits.substr(1)) : "";
    return absl::StrCat(sign, digits.substr(0, 1), fraction, point > 0 ? "e+" : "e-",
                        std::abs(point - 1));
  }
  if (point <= 0) return absl::StrCat(sign, "0.", std::string(-point, '0'), digits);
  if (count <= point) return absl::StrCat(sign, digits, std::string(point - count, '0'));
  return absl::StrCat(sign, digits.substr(0, point), ".", digits.substr(point));
}

absl::StatusOr<std::string> CanonicalJson(const nlohmann::json& json) {
  Printer printer(/*strict=*/true);
  printer.Print(json);
  return printer.Take();
}

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
  Printer printer(/*strict=*/false);
  printer.Print(json);
  const absl::StatusOr<std::string> canonical = printer.Take();
  if (!canonical.ok()) return absl::DataLossError(canonical.status().message());
  if (*canonical == text) return json;
  size_t at = 0;
  while (at < text.size() && at < canonical->size() && text[at] == (*canonical)[at]) ++at;
  return absl::DataLossError(
      absl::StrCat("expected canonical JSON (RFC 8785: sorted keys, each once, no white space, "
                   "shortest numbers); byte ",
                   at, " differs"));
}

JsonReader::JsonReader(const nlohmann::json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object())
    status_ = absl::DataLossError(absl::StrCat(where_, ": expected an object"));
}

const nlohmann::json* JsonReader::Find(const char* key, absl::FunctionRef<std::string()> expected) {
  if (!status_.ok()) return nullptr;
  const auto found = json_.find(key);
  if (found != json_.end()) {
    asked_.push_back(&found.key());
    return &*found;
  }
  Fail(key, expected(), "nothing");
  return nullptr;
}

int64_t JsonReader::Integer(const char* key, int64_t least, int64_t most) {
  const auto expected = [&] { return absl::StrCat("an integer from ", least, " to ", most); };
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return least;
  const bool fits =
      value->is_number_integer() &&
      !(value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  if (fits && value->get<int64_t>() >= least && value->get<int64_t>() <= most)
    return value->get<int64_t>();
  Fail(key, expected(), fits ? absl::StrCat(value->get<int64_t>()) : value->type_name());
  return least;
}

double JsonReader::Number(const char* key, double least, double most) {
  const auto expected = [&] {
    return absl::StrCat("a number from ", CanonicalNumber(least), " to ", CanonicalNumber(most));
  };
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return least;
  if (!value->is_number()) {
    Fail(key, expected(), value->type_name());
    return least;
  }
  const double number = value->get<double>();
  if (number >= least && number <= most) return number;
  Fail(key, expected(), CanonicalNumber(number));
  return least;
}

std::string JsonReader::String(const char* key, size_t bytes_max) {
  const auto expected = [&] { return absl::StrCat("a string of at most ", bytes_max, " bytes"); };
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return "";
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() <= bytes_max) return text;
    Fail(key, expected(), absl::StrCat(text.size(), " bytes"));
  } else {
    Fail(key, expected(), value->type_name());
  }
  return "";
}

Digest JsonReader::Sha256Digest(const char* key) {
  const std::string text = String(key, 64);
  if (!status_.ok()) return {};
  const bool lower = std::none_of(text.begin(), text.end(), absl::ascii_isupper);
  const absl::StatusOr<Digest> digest = Digest::FromHex(text);
  if (digest.ok() && lower) return *digest;
  Fail(key, "64 lower-case hexadecimal digits", "something else");
  return {};
}

const nlohmann::json& JsonReader::Array(const char* key, size_t items_max) {
  const auto expected = [&] { return absl::StrCat("an array of at most ", items_max, " items"); };
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return EmptyArray();
  if (value->is_array() && value->size() <= items_max) return *value;
  Fail(key, expected(),
       value->is_array() ? absl::StrCat(value->size(), " items") : value->type_name());
  return EmptyArray();
}

const nlohmann::json& JsonReader::Object(const char* key) {
  const auto expected = [] { return std::string("an object"); };
  const nlohmann::json* value = Find(key, expected);
  if (value == nullptr) return EmptyObject();
  if (value->is_object()) return *value;
  Fail(key, expected(), value->type_name());
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
    if (std::find(asked_.begin(), asked_.end(), &item.key()) == asked_.end())
      Fail(item.key(), "no such key", "one");
  }
  return status_;
}

}  // namespace lockstep
