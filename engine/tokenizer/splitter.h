// SPDX-License-Identifier: Apache-2.0
//
// Cuts text into the pieces that byte-pair encoding works within: the Llama-3 pattern, by hand
// instead of by a regular-expression engine, which costs more for each match than the rest of
// encoding. splitter_test.cc holds it against PCRE2 on every sequence of character kinds up to a
// length. The rule: docs/tokenizer.md.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_SPLITTER_H_
#define LOCKSTEP_ENGINE_TOKENIZER_SPLITTER_H_

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
  const char* PieceEnd(const char* p, const char* end) const;

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
