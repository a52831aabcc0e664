// SPDX-License-Identifier: Apache-2.0
//
// Validity and mending of UTF-8. simdjson checks; what it refuses is rare and walked through byte
// by byte.
#include "engine/corpus/utf8.h"

#include <cstdint>

#include "simdjson.h"

namespace lockstep::engine {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

struct Sequence {
  size_t size;  // bytes of the character, or of the maximal subpart of an ill-formed sequence
  bool valid;
};

// What the sequence at the front of `bytes` (not empty) is: table 3-7 of the Unicode Standard.
Sequence FirstSequence(absl::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < size; ++i) {
    if (i >= bytes.size() || at(i) < low || at(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {size, true};
}

}  // namespace

bool IsValidUtf8(absl::string_view bytes) {
  return bytes.empty() || simdjson::validate_utf8(bytes.data(), bytes.size());
}

std::string ReplaceInvalidUtf8(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + 16);
  size_t start = 0;  // of the valid run that ends at i
  size_t i = 0;
  while (i < bytes.size()) {
    const Sequence sequence = FirstSequence(bytes.substr(i));
    if (!sequence.valid) {
      out.append(bytes.data() + start, i - start);
      out.append(kReplacement);
      start = i + sequence.size;
    }
    i += sequence.size;
  }
  out.append(bytes.data() + start, bytes.size() - start);
  return out;
}

std::string Latin1ToUtf8(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 8);
  for (const char c : bytes) AppendUtf8(static_cast<uint8_t>(c), &out);
  return out;
}

void AppendUtf8(char32_t code_point, std::string* out) {
  const auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  const uint32_t c = code_point;
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
    out->append(kReplacement);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

size_t CharacterBoundary(absl::string_view text, size_t size) {
  if (size >= text.size()) return text.size();
  while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) --size;
  return size;
}

bool IsBlank(absl::string_view text) {
  for (const char c : text) {
    if (c != ' ' && (c < '\t' || c > '\r')) return false;
  }
  return true;
}

}  // namespace lockstep::engine
