// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: tokenizer files. What is accepted is written back to the same bytes, and its
// tokenizer gives back any text. An input that does not begin like a tokenizer file is a text for a
// small tokenizer instead, and lines for one with all bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::engine {
namespace {

void CheckIdentity(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.Encode(text, &ids);
  LOCKSTEP_CHECK(tokenizer.Decode(ids).value() == text);
}

void CheckFile(absl::string_view bytes, absl::string_view text) {
  const absl::StatusOr<Vocabulary> vocabulary = ParseVocabulary(bytes);
  if (!vocabulary.ok()) return;
  LOCKSTEP_CHECK(SerializeVocabulary(*vocabulary) == bytes);
  CheckIdentity(*Tokenizer::FromVocabulary(*vocabulary).value(), text);
}

// A vocabulary of the bytes and of the input's words.
void CheckWords(absl::string_view input) {
  Vocabulary v;
  for (int byte = 0; byte < 256; ++byte) v.tokens.emplace_back(1, static_cast<char>(byte));
  for (size_t at = 0; at < input.size();) {
    const size_t size = 2 + static_cast<uint8_t>(input[at]) % 7;
    v.tokens.emplace_back(input.substr(at, size));
    at += size;
  }
  v.end_of_text = AddSpecialToken(kEndOfTextName, &v);
  const auto tokenizer = Tokenizer::FromVocabulary(v);
  if (!tokenizer.ok()) return;  // a word twice, or of one byte
  const std::string file = SerializeVocabulary(v);
  LOCKSTEP_CHECK(ParseVocabulary(file).value() == v);
  CheckIdentity(**tokenizer, input);
}

}  // namespace
}  // namespace lockstep::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  lockstep::engine::CheckFile(input, input);
  lockstep::engine::CheckWords(input);
  // Behind a head and the bytes, so that lines of tokens are reached.
  std::string file =
      "lockstep-tokenizer 1\nsplit llama3-unicode14\ntokens 258\nspecial 1\nend-of-text 258\n";
  for (int byte = 0; byte < 256; ++byte) {
    const uint8_t one = static_cast<uint8_t>(byte);
    absl::StrAppend(&file, lockstep::Base64Encode({&one, 1}), "\n");
  }
  absl::StrAppend(&file, input);
  lockstep::engine::CheckFile(file, input);
  return 0;
}
