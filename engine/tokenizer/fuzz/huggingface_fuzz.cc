// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: tokenizer.json, whole or as the end of a good one's lists. What is accepted comes
// back from its export.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "engine/tokenizer/formats.h"

namespace {

using namespace lockstep::engine;  // NOLINT(google-build-using-namespace)

void Check(absl::string_view bytes) {
  const absl::StatusOr<Vocabulary> v = ImportHuggingFace(bytes);
  if (!v.ok()) return;
  const auto tokenizer = Tokenizer::FromVocabulary(*v).value();
  const absl::StatusOr<std::string> text = ExportHuggingFace(*tokenizer);
  if (!text.ok()) return;  // a special token's name collides
  const std::string end_of_text = v->special_tokens[v->end_of_text - v->tokens.size()];
  LOCKSTEP_CHECK(ImportHuggingFace(*text, end_of_text).value() == *v);
}

// A good file, of the bytes and three merges.
const std::string& Good() {
  static const std::string* const kGood = [] {
    Vocabulary v;
    for (int byte = 0; byte < 256; ++byte) v.tokens.emplace_back(1, static_cast<char>(byte));
    v.tokens.insert(v.tokens.end(), {"ab", "abc", " ab"});
    v.end_of_text = AddSpecialToken(kEndOfTextName, &v);
    return new std::string(ExportHuggingFace(*Tokenizer::FromVocabulary(v).value()).value());
  }();
  return *kGood;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  Check(input);
  for (const char* place :
       {"\"added_tokens\":[", "\"vocab\":{", "\"merges\":[", "\"ignore_merges\":"}) {
    std::string file = Good();
    file.insert(file.find(place) + std::string(place).size(), input.data(), input.size());
    Check(file);
  }
  return 0;
}
