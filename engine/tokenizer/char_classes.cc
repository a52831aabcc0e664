// SPDX-License-Identifier: Apache-2.0
//
// The table of character classes, laid out from ranges.
#include "engine/tokenizer/char_classes.h"

#include <algorithm>
#include <vector>

namespace lockstep::engine {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

constexpr Range kLetters[] = {
#define LOCKSTEP_LETTERS
#include "engine/tokenizer/char_classes.inc"
#undef LOCKSTEP_LETTERS
};

constexpr Range kNumbers[] = {
#define LOCKSTEP_NUMBERS
#include "engine/tokenizer/char_classes.inc"
#undef LOCKSTEP_NUMBERS
};

// The White_Space property, without U+000A, U+000D and U+0020. It has not changed since
// Unicode 6.3. PCRE2's own \s takes U+180E besides, and JavaScript's takes U+FEFF and not U+0085.
constexpr Range kSpaces[] = {{0x9, 0x9},       {0xB, 0xC},       {0x85, 0x85},     {0xA0, 0xA0},
                             {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                             {0x205F, 0x205F}, {0x3000, 0x3000}};

std::vector<CharClass>* MakeClasses() {
  auto* classes = new std::vector<CharClass>(kCodePoints, CharClass::kOther);
  const auto fill = [classes](const auto& ranges, CharClass char_class) {
    for (const Range& range : ranges) {
      std::fill(classes->begin() + range.first, classes->begin() + range.last + 1, char_class);
    }
  };
  fill(kLetters, CharClass::kLetter);
  fill(kNumbers, CharClass::kNumber);
  fill(kSpaces, CharClass::kSpace);
  (*classes)[' '] = CharClass::kBlank;
  (*classes)['\r'] = CharClass::kNewline;
  (*classes)['\n'] = CharClass::kNewline;
  return classes;
}

}  // namespace

const CharClass* CharClasses() {
  static const std::vector<CharClass>* const kClasses = MakeClasses();
  return kClasses->data();
}

}  // namespace lockstep::engine
