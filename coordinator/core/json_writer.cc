// SPDX-License-Identifier: Apache-2.0
//
// See json_writer.h.

#include "coordinator/core/json_writer.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace lockstep::coordinator {
namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the well-formed character at the front (Unicode 15, table 3-7); 0 if there is none.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
}

void AppendEscaped(char c, std::string* out) {
  switch (c) {
    case '"':
    case '\\':
      *out += '\\';
      *out += c;
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      *out += "\\u00";
      *out += kHex[static_cast<unsigned char>(c) >> 4];
      *out += kHex[static_cast<unsigned char>(c) & 15];
  }
}

template <typename Real>
void AppendReal(Real value, std::string* out) {
  char digits[40];
  const auto result = std::to_chars(digits, digits + sizeof(digits), value);
  out->append(digits, result.ptr);
}

}  // namespace

void JsonWriter::Key(absl::string_view name) {
  Comma();
  absl::StrAppend(&text_, "\"", name, "\":");
  comma_ = false;
}

void JsonWriter::Value(float value) {
  if (std::isnan(value)) return Raw("\"nan\"");
  if (std::isinf(value)) return Raw(value > 0 ? "\"inf\"" : "\"-inf\"");
  Comma();
  AppendReal(value, &text_);
}

void JsonWriter::Finite(double value) {
  if (!std::isfinite(value)) return Null();
  Comma();
  AppendReal(static_cast<float>(value), &text_);
}

void JsonWriter::Value(absl::string_view text) {
  Comma();
  text_ += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    text_.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t bytes = CharacterBytes(text);
    if (bytes == 1) {
      AppendEscaped(text.front(), &text_);
    } else {
      absl::StrAppend(&text_, bytes == 0 ? kReplacement : text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  text_ += '"';
}

void JsonWriter::Value(const Digest& digest) {
  Comma();
  absl::StrAppend(&text_, "\"", digest.ToHex(), "\"");
}

void JsonWriter::Raw(absl::string_view json) {
  Comma();
  absl::StrAppend(&text_, json);
}

void JsonWriter::Signed(int64_t value) {
  Comma();
  absl::StrAppend(&text_, value);
}

void JsonWriter::Unsigned(uint64_t value) {
  Comma();
  absl::StrAppend(&text_, value);
}

std::string CleanUtf8(absl::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    absl::StrAppend(&clean, bytes == 0 ? kReplacement : text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return clean;
}

}  // namespace lockstep::coordinator
