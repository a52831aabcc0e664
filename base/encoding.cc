// SPDX-License-Identifier: Apache-2.0
//
// Hexadecimal and base64. See encoding.h.

#include "base/encoding.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr char kBase64Digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The value of a digit, or -1.
int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

absl::Status BadDigit(absl::string_view kind, absl::string_view text, size_t at) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected a ", kind, " digit at position ", at, ", found byte 0x",
                   absl::Hex(static_cast<uint8_t>(text[at]), absl::kZeroPad2)));
}

}  // namespace

std::string HexEncode(ByteSpan bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

absl::StatusOr<std::string> HexDecode(absl::string_view text) {
  if (text.size() % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an even number of hexadecimal digits, found ", text.size()));
  }
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexValue(text[i]);
    const int low = HexValue(text[i + 1]);
    if (high < 0) return BadDigit("hexadecimal", text, i);
    if (low < 0) return BadDigit("hexadecimal", text, i + 1);
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string Base64Encode(ByteSpan bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) { return k < bytes.size() ? uint32_t{bytes[k]} : 0; };
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    text += kBase64Digits[group >> 18];
    text += kBase64Digits[group >> 12 & 63];
    text += i + 1 < bytes.size() ? kBase64Digits[group >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kBase64Digits[group & 63] : '=';
  }
  return text;
}

absl::StatusOr<std::string> Base64Decode(absl::string_view text) {
  absl::string_view digits = text;
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && !digits.empty() && digits.back() == '='; ++i) digits.remove_suffix(1);
  }
  if (digits.size() % 4 == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("base64 text of ", digits.size(), " digits is cut short"));
  }
  if (digits.find_first_of("+/") != digits.npos && digits.find_first_of("-_") != digits.npos) {
    return absl::InvalidArgumentError("base64 text mixes the standard and the URL-safe alphabet");
  }
  std::string bytes;
  bytes.reserve(digits.size() / 4 * 3 + 2);
  uint32_t buffer = 0;
  int bits = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int value = Base64Value(digits[i]);
    if (value < 0) return BadDigit("base64", text, i);
    buffer = buffer << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(buffer >> bits);
      buffer &= (1u << bits) - 1;
    }
  }
  if (buffer != 0) {
    return absl::InvalidArgumentError("base64 text has bits set past its last byte");
  }
  return bytes;
}

}  // namespace lockstep
