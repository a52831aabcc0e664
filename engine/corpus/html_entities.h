// SPDX-License-Identifier: Apache-2.0
//
// Character references of HTML.
#ifndef LOCKSTEP_ENGINE_CORPUS_HTML_ENTITIES_H_
#define LOCKSTEP_ENGINE_CORPUS_HTML_ENTITIES_H_

#include "absl/strings/string_view.h"

namespace lockstep::engine {

// The character that `&name;` stands for, 0 if there is none. Case matters.
char32_t NamedCharacter(absl::string_view name);

// The character that `&#number;` stands for: 0x80 to 0x9F are read as Windows-1252, 0 is U+FFFD,
// others are themselves.
char32_t ReferencedCharacter(char32_t number);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_HTML_ENTITIES_H_
