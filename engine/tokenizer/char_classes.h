// SPDX-License-Identifier: Apache-2.0
//
// What the split into pieces needs to know of a character: letter, number, white space or neither,
// by a table of our own, so that every machine splits alike whatever Unicode version its libraries
// carry. The table is Unicode 14's as PCRE2 10.42 has it (\p{L}, \p{N}, and the White_Space
// property for \s); char_classes_test.cc compares the two and can write it anew.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_CHAR_CLASSES_H_
#define LOCKSTEP_ENGINE_TOKENIZER_CHAR_CLASSES_H_

#include <cstdint>

namespace lockstep::engine {

enum class CharClass : uint8_t {
  kOther,    // neither letter nor number nor white space
  kLetter,   // \p{L}
  kNumber,   // \p{N}
  kSpace,    // White_Space, but for the three below
  kBlank,    // U+0020
  kNewline,  // \r, \n
  kInvalid,  // no character: a byte at which no well-formed UTF-8 begins
};

// One past the last code point.
inline constexpr uint32_t kCodePoints = 0x110000;

// The classes of all code points, kCodePoints of them; surrogates are kOther. Made at the first
// call, from any thread.
const CharClass* CharClasses();

struct Char {
  CharClass char_class;
  uint8_t bytes;
};

namespace char_classes_internal {

inline bool Continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

}  // namespace char_classes_internal

// The character at p, one byte or more before `end`, of which the first is 0x80 or above.
// Well-formed is what Unicode's table 3-7 says: no surrogate, no overlong form, nothing above
// U+10FFFF. Anything else is one kInvalid byte.
inline Char MultibyteCharAt(const CharClass* classes, const char* p, const char* end) {
  using char_classes_internal::Continues;
  const auto* s = reinterpret_cast<const uint8_t*>(p);
  const int64_t left = end - p;
  const uint32_t lead = s[0];
  if (lead < 0xE0) {
    if (lead >= 0xC2 && left >= 2 && Continues(s[1])) {
      return {classes[(lead & 0x1F) << 6 | (s[1] & 0x3Fu)], 2};
    }
  } else if (lead < 0xF0) {
    if (left >= 3 && Continues(s[1]) && Continues(s[2])) {
      const uint32_t code = (lead & 0xF) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
      if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {classes[code], 3};
    }
  } else if (lead < 0xF5) {
    if (left >= 4 && Continues(s[1]) && Continues(s[2]) && Continues(s[3])) {
      const uint32_t code =
          (lead & 7) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
      if (code >= 0x10000 && code < kCodePoints) return {classes[code], 4};
    }
  }
  return {CharClass::kInvalid, 1};
}

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_CHAR_CLASSES_H_
