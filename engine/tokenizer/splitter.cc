// SPDX-License-Identifier: Apache-2.0
//
// The pattern's alternatives, chosen by the class of the first character. Each function names the
// part that it stands for.
#include "engine/tokenizer/splitter.h"

namespace lockstep::engine {

const char* Splitter::SkipAll(CharClass char_class, const char* p, const char* end) const {
  while (p != end) {
    const Char next = CharAt(p, end);
    if (next.char_class != char_class) break;
    p += next.bytes;
  }
  return p;
}

// [^\s\p{L}\p{N}]*[\r\n]*
const char* Splitter::OthersEnd(const char* p, const char* end) const {
  p = SkipAll(CharClass::kOther, p, end);
  while (p != end && (*p == '\r' || *p == '\n')) ++p;
  return p;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at a character of white space: up to the last line end of the run; else
// all of it if the text ends there; else all but the last character, which goes with what follows;
// else that one character.
const char* Splitter::SpacesEnd(const char* p, const char* end) const {
  const char* after_newline = nullptr;
  const char* last = p;
  const char* const begin = p;
  while (p != end) {
    const Char next = CharAt(p, end);
    if (next.char_class == CharClass::kNewline) {
      after_newline = p + next.bytes;
    } else if (next.char_class == CharClass::kInvalid) {
      end = p;
      break;
    } else if (next.char_class != CharClass::kSpace && next.char_class != CharClass::kBlank) {
      break;
    }
    last = p;
    p += next.bytes;
  }
  if (after_newline != nullptr) return after_newline;
  if (p == end || last == begin) return p;
  return last;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d) at an apostrophe; null without a match. The long s, U+017F, is an s
// without case.
const char* Splitter::ContractionEnd(const char* p, const char* end) {
  const auto letter = [p, end](int i) {
    return end - p > i ? static_cast<unsigned char>(p[i]) | 0x20 : 0;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return p + 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? p + 3 : nullptr;
    case 'l':
      return letter(2) == 'l' ? p + 3 : nullptr;
    default:
      return absl::string_view(p + 1, static_cast<size_t>(end - p - 1)).substr(0, 2) == "\xC5\xBF"
                 ? p + 3
                 : nullptr;
  }
}

const char* Splitter::AnyPieceEnd(const char* p, const char* end) const {
  const Char first = CharAt(p, end);
  const char* const second = p + first.bytes;
  switch (first.char_class) {
    case CharClass::kLetter:
      return SkipAll(CharClass::kLetter, second, end);
    case CharClass::kNumber: {  // \p{N}{1,3}
      const char* q = second;
      for (int i = 0; i < 2 && q != end; ++i) {
        const Char next = CharAt(q, end);
        if (next.char_class != CharClass::kNumber) break;
        q += next.bytes;
      }
      return q;
    }
    case CharClass::kInvalid:
      return SkipAll(CharClass::kInvalid, second, end);
    case CharClass::kNewline:
      return SpacesEnd(p, end);
    case CharClass::kOther:
      if (*p == '\'') {
        if (const char* q = ContractionEnd(p, end); q != nullptr) return q;
      }
      break;
    case CharClass::kSpace:
    case CharClass::kBlank:
      break;
  }
  // [^\r\n\p{L}\p{N}]?\p{L}+
  const CharClass next = second == end ? CharClass::kInvalid : CharAt(second, end).char_class;
  if (next == CharClass::kLetter) return SkipAll(CharClass::kLetter, second, end);
  if (first.char_class == CharClass::kOther) return OthersEnd(second, end);
  if (first.char_class == CharClass::kBlank && next == CharClass::kOther) {
    return OthersEnd(second, end);
  }
  return SpacesEnd(p, end);
}

}  // namespace lockstep::engine
