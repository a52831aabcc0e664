// SPDX-License-Identifier: Apache-2.0
//
// Bytes as printable characters, as GPT-2's vocabulary and with it every tokenizer.json writes
// them: visible Latin-1 characters stand for the byte of their value, and the other 68 bytes, in
// order, are U+0100 and what follows.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_BYTE_LEVEL_H_
#define LOCKSTEP_ENGINE_TOKENIZER_BYTE_LEVEL_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::engine {

// As UTF-8.
std::string ByteLevelEncode(absl::string_view bytes);
// Nothing if the text has a character that stands for no byte, or is not UTF-8.
std::optional<std::string> ByteLevelDecode(absl::string_view text);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_BYTE_LEVEL_H_
