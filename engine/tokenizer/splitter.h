// SPDX-License-Identifier: Apache-2.0
//
// Cuts text into the pieces that byte-pair encoding works within: the Llama-3 pattern, by hand
// instead of by a regular-expression engine, which costs more for each match than the rest of
// encoding. splitter_test.cc holds it against PCRE2 on every sequence of character kinds up to a
// length. The rule: docs/tokenizer.md.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_SPLITTER_H_
#define LOCKSTEP_ENGINE_TOKENIZER_SPLITTER_H_

#include <bit>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/tokenizer/char_classes.h"

namespace lockstep::engine {

// The pattern as other tools are given it.
inline constexpr absl::string_view kSplitPattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

// How tokenizer files name the pattern with the Unicode version and the rule for bytes that are not
// UTF-8.
inline constexpr absl::string_view kSplitName = "llama3-unicode14";

// From any thread.
class Splitter {
 public:
  Splitter() : classes_(CharClasses()) {}

  // One past the end of the piece that begins at p < end, which must be where a piece begins.
  // Pieces tile the text. A run of bytes that are not UTF-8 is a piece, and for its neighbours it
  // is the text's edge.
  const char* PieceEnd(const char* p, const char* end) const {
    // Most pieces are a word of ASCII letters, behind a blank or not.
    const char* const word = p + (*p == ' ' ? 1 : 0);
    if (end - word >= 8) {
      const int letters = AsciiLettersAt(word);
      if (letters > 0) {
        const char* const after = word + letters;
        if (letters < 8 && static_cast<uint8_t>(*after) < 0x80) return after;
        return SkipAll(CharClass::kLetter, after, end);
      }
    }
    return AnyPieceEnd(p, end);
  }

  // Calls fn(piece) for each piece of `text` in order.
  template <typename Fn>
  void ForEachPiece(absl::string_view text, Fn fn) const {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) {
      const char* const next = PieceEnd(p, end);
      fn(absl::string_view(p, static_cast<size_t>(next - p)));
      p = next;
    }
  }

 private:
  // How many of the 8 bytes at p are ASCII letters before the first that is none.
  static int AsciiLettersAt(const char* p) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    constexpr uint64_t kHigh = 0x80 * kOnes;
    uint64_t bytes = 0;
    for (int i = 0; i < 8; ++i) bytes |= uint64_t{static_cast<uint8_t>(p[i])} << (8 * i);
    const uint64_t lower = (bytes | 0x20 * kOnes) & ~kHigh;
    const uint64_t from_a = lower + (0x80 - 'a') * kOnes;       // high bit: not below 'a'
    const uint64_t above_z = lower + (0x80 - 'z' - 1) * kOnes;  // high bit: above 'z'
    const uint64_t others = ~(from_a & ~above_z & ~bytes) & kHigh;
    return others == 0 ? 8 : std::countr_zero(others) / 8;
  }
  const char* AnyPieceEnd(const char* p, const char* end) const;
  Char CharAt(const char* p, const char* end) const {
    const auto byte = static_cast<uint8_t>(*p);
    if (byte < 0x80) return {classes_[byte], 1};
    return MultibyteCharAt(classes_, p, end);
  }
  // One past the run of characters of the class at p.
  const char* SkipAll(CharClass char_class, const char* p, const char* end) const;
  const char* OthersEnd(const char* p, const char* end) const;
  const char* SpacesEnd(const char* p, const char* end) const;
  static const char* ContractionEnd(const char* p, const char* end);

  const CharClass* classes_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_SPLITTER_H_
