// SPDX-License-Identifier: Apache-2.0
//
// tiktoken's rank files.
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/status.h"
#include "engine/tokenizer/formats.h"

namespace lockstep::engine {

std::string ExportTiktoken(const Vocabulary& vocabulary) {
  std::string out;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    absl::StrAppend(&out, Base64Encode(AsBytes(vocabulary.tokens[id])), " ", id, "\n");
  }
  return out;
}

absl::StatusOr<Vocabulary> ImportTiktoken(absl::string_view bytes,
                                          const std::vector<std::string>& special_tokens) {
  Vocabulary v;
  const auto error = [&v](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("line ", v.tokens.size() + 1, ": ", what));
  };
  while (!bytes.empty()) {
    const absl::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    if (v.tokens.size() == kVocabularyMax) {
      return error(absl::StrCat("expected at most ", kVocabularyMax, " tokens"));
    }
    const size_t blank = line.find(' ');
    if (blank == absl::string_view::npos) {
      return error(absl::StrCat("expected \"BASE64 RANK\", found \"",
                                absl::CHexEscape(line.substr(0, 60)), "\""));
    }
    absl::StatusOr<std::string> token = Base64Decode(line.substr(0, blank));
    if (!token.ok()) return error(token.status().message());
    if (line.substr(blank + 1) != absl::StrCat(v.tokens.size())) {
      return error(absl::StrCat("expected rank ", v.tokens.size(), ", found \"",
                                absl::CHexEscape(line.substr(blank + 1, 60)), "\""));
    }
    v.tokens.push_back(*std::move(token));
  }
  if (special_tokens.empty()) {
    return absl::InvalidArgumentError("expected a special token: the end of text");
  }
  v.special_tokens = special_tokens;
  v.end_of_text = static_cast<int32_t>(v.tokens.size());
  if (absl::Status status = ValidateVocabulary(v); !status.ok()) {
    return absl::DataLossError(status.message());
  }
  return v;
}

}  // namespace lockstep::engine
