// SPDX-License-Identifier: Apache-2.0
//
// What a tokenizer is made of, and the file that holds it. Everything else (merges, look-up tables)
// follows from it. Format: docs/tokenizer.md.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_VOCABULARY_H_
#define LOCKSTEP_ENGINE_TOKENIZER_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::engine {

inline constexpr absl::string_view kEndOfTextName = "<|endoftext|>";

// Entries, special ones among them.
inline constexpr int64_t kVocabularyMax = 1 << 20;
// Bytes of one token, and of a special token's name.
inline constexpr int64_t kTokenBytesMax = 1024;
// Bytes of a tokenizer file, and of the files of other tools.
inline constexpr int64_t kTokenizerFileBytesMax = int64_t{64} << 20;

// An entry's id is its place: ordinary tokens from 0, special ones after them.
struct Vocabulary {
  // By rank: of two merges that are possible, the one that makes the lower token comes first. The
  // first 256 are the single bytes in some order; those that we train have byte b at b.
  std::vector<std::string> tokens;
  std::vector<std::string> special_tokens;  // names, UTF-8
  int32_t end_of_text = 0;                  // id of a special token

  int64_t size() const { return static_cast<int64_t>(tokens.size() + special_tokens.size()); }
  // Of an id below size().
  bool is_special(int32_t id) const { return id >= static_cast<int64_t>(tokens.size()); }
  // The bytes of a token, the name of a special one.
  const std::string& entry(int32_t id) const {
    return is_special(id) ? special_tokens[static_cast<size_t>(id) - tokens.size()] : tokens[id];
  }
  bool operator==(const Vocabulary&) const = default;
};

// Whether the rules of docs/tokenizer.md hold; InvalidArgument names the first entry that
// breaks one.
absl::Status ValidateVocabulary(const Vocabulary& vocabulary);

// The tokenizer file's bytes, for a vocabulary that is valid: one text for each vocabulary.
std::string SerializeVocabulary(const Vocabulary& vocabulary);

// Of bytes from anywhere. What is accepted is valid and serialises to the same bytes; else
// DataLoss, which names the line.
absl::StatusOr<Vocabulary> ParseVocabulary(absl::string_view bytes);

// The id of `name` among the special tokens, added as the last where it is missing.
int32_t AddSpecialToken(absl::string_view name, Vocabulary* vocabulary);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_VOCABULARY_H_
