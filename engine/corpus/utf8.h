// SPDX-License-Identifier: Apache-2.0
//
// Documents are valid UTF-8. What is not is mended here by one of two rules
// (docs/corpus_format.md). The Unicode Standard, chapter 3.9, says what valid is, and where an
// invalid sequence ends.
#ifndef LOCKSTEP_ENGINE_CORPUS_UTF8_H_
#define LOCKSTEP_ENGINE_CORPUS_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::engine {

bool IsValidUtf8(absl::string_view bytes);

// Each maximal subpart of an ill-formed sequence becomes one U+FFFD, which is also what web
// browsers and Python's decoder do. Valid text comes back unchanged; the result is always valid,
// and at most three times as long.
std::string ReplaceInvalidUtf8(absl::string_view bytes);

// Each byte is the code point of its value (ISO 8859-1). At most twice as long.
std::string Latin1ToUtf8(absl::string_view bytes);

// Appends the code point's UTF-8; surrogates and values above U+10FFFF give U+FFFD.
void AppendUtf8(char32_t code_point, std::string* out);

// The largest length of at most `size` (which is at most text.size()) that cuts no character of
// valid `text` in two.
size_t CharacterBoundary(absl::string_view text, size_t size);

// Nothing but space, tab, line feed, vertical tab, form feed and carriage return.
bool IsBlank(absl::string_view text);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_UTF8_H_
