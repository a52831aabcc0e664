// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers as other tools keep them: Hugging Face's tokenizer.json and tiktoken's rank files.
// What is exported gives those tools our ids; what is imported gives us theirs, or is refused.
// Which fields are read and written: docs/tokenizer.md.
//
// Errors of imports: DataLoss names what is wrong with the bytes and where, Unimplemented a feature
// that would give other ids.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_FORMATS_H_
#define LOCKSTEP_ENGINE_TOKENIZER_FORMATS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary.h"

namespace lockstep::engine {

// A line for each ordinary token: base64 of its bytes, a blank, its id. Neither the pattern nor
// special tokens have a place in it: tiktoken's user gives kSplitPattern and the special tokens'
// ids.
std::string ExportTiktoken(const Vocabulary& vocabulary);

// Such a file, of any bytes, with ranks 0, 1, 2, ... in order, split by kSplitPattern;
// special_tokens[0] is the end of text.
absl::StatusOr<Vocabulary> ImportTiktoken(absl::string_view bytes,
                                          const std::vector<std::string>& special_tokens);

// A tokenizer.json: model BPE with merges, pre-tokenizer kSplitPattern and ByteLevel.
// InvalidArgument if a special token's name is how ByteLevel writes an ordinary token.
absl::StatusOr<std::string> ExportHuggingFace(const Tokenizer& tokenizer);

// Such a file, of any bytes: ordinary tokens must have the lowest ids and be numbered in the order
// of their merges, and added tokens must follow. `end_of_text` names the end of text among the
// added tokens; where it is missing it is added.
absl::StatusOr<Vocabulary> ImportHuggingFace(absl::string_view bytes,
                                             absl::string_view end_of_text = kEndOfTextName);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_FORMATS_H_
