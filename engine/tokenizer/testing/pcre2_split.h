// SPDX-License-Identifier: Apache-2.0
//
// The pattern as PCRE2 understands it, and plain helpers, for tests: what the splitter is held
// against.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_TESTING_PCRE2_SPLIT_H_
#define LOCKSTEP_ENGINE_TOKENIZER_TESTING_PCRE2_SPLIT_H_

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/logging.h"
#include "engine/tokenizer/splitter.h"

namespace lockstep::engine::testing {

inline std::string Pcre2UnicodeVersion() {
  char text[64] = {};
  pcre2_config_8(PCRE2_CONFIG_UNICODE_VERSION, text);
  return text;
}

inline void AppendUtf8(uint32_t code, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

// A compiled pattern, with UTF and UCP, by the just-in-time compiler. For one thread.
class Pcre2 {
 public:
  explicit Pcre2(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    LOCKSTEP_CHECK(code_ != nullptr, "pattern {} at {}: PCRE2 error {}", pattern, offset, error);
    pcre2_jit_compile_8(code_, PCRE2_JIT_COMPLETE);
    match_ = pcre2_match_data_create_from_pattern_8(code_, nullptr);
  }
  ~Pcre2() {
    pcre2_match_data_free_8(match_);
    pcre2_code_free_8(code_);
  }
  Pcre2(const Pcre2&) = delete;
  Pcre2& operator=(const Pcre2&) = delete;

  // The end of the match that begins at `offset`, or 0.
  size_t MatchEnd(absl::string_view text, size_t offset) const {
    const int rc =
        pcre2_match_8(code_, reinterpret_cast<PCRE2_SPTR8>(text.data()), text.size(), offset,
                      PCRE2_ANCHORED | (offset > 0 ? PCRE2_NO_UTF_CHECK : 0), match_, nullptr);
    return rc < 0 ? 0 : pcre2_get_ovector_pointer_8(match_)[1];
  }
  bool MatchesAt(absl::string_view text, size_t offset) const {
    return MatchEnd(text, offset) > offset;
  }

 private:
  pcre2_code_8* code_;
  pcre2_match_data_8* match_;
};

// kSplitPattern with its \s spelled as the White_Space property: PCRE2's takes U+180E besides.
inline std::string Pcre2SplitPattern() {
  const std::string inside =
      "\\t-\\r "
      "\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
  return absl::StrReplaceAll(
      kSplitPattern,
      {{"[^\\s", "[^" + inside}, {"\\S", "[^" + inside + "]"}, {"\\s", "[" + inside + "]"}});
}

// Pieces of valid UTF-8.
inline std::vector<std::string> Pcre2Split(const Pcre2& regex, absl::string_view text) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t next = regex.MatchEnd(text, at);
    LOCKSTEP_CHECK(next > at, "the pattern does not match at {}", at);
    pieces.emplace_back(text.substr(at, next - at));
    at = next;
  }
  return pieces;
}

inline std::vector<std::string> Split(absl::string_view text) {
  std::vector<std::string> pieces;
  Splitter().ForEachPiece(text, [&](absl::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_TOKENIZER_TESTING_PCRE2_SPLIT_H_
