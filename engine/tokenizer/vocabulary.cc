// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer file, written and read, and the rules that a vocabulary keeps.
#include "engine/tokenizer/vocabulary.h"

#include <algorithm>
#include <bitset>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/encoding.h"
#include "base/status.h"
#include "engine/tokenizer/char_classes.h"
#include "engine/tokenizer/splitter.h"

namespace lockstep::engine {
namespace {

constexpr absl::string_view kFirstLine = "lockstep-tokenizer 1";

bool IsUtf8(absl::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    if (static_cast<uint8_t>(*p) < 0x80) {
      ++p;
      continue;
    }
    const Char next = MultibyteCharAt(CharClasses(), p, end);
    if (next.char_class == CharClass::kInvalid) return false;
    p += next.bytes;
  }
  return true;
}

absl::Status ValidateTokens(const Vocabulary& v, absl::flat_hash_set<absl::string_view>* seen) {
  std::bitset<256> bytes;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const std::string& token = v.tokens[id];
    if (id < 256) {
      if (token.size() != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "token ", id, " has ", token.size(), " bytes; the first 256 must be the single bytes"));
      }
      bytes.set(static_cast<uint8_t>(token[0]));
    }
    if (token.empty() || token.size() > kTokenBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " has ", token.size(),
                                                     " bytes; expected 1 to ", kTokenBytesMax));
    }
    if (!seen->insert(token).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, ", \"", absl::CHexEscape(token), "\", was there before"));
    }
  }
  if (!bytes.all()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", v.tokens.size(), " tokens; expected at least the 256 single bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateVocabulary(const Vocabulary& v) {
  if (v.size() > kVocabularyMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has ", v.size(), " entries; at most ", kVocabularyMax));
  }
  absl::flat_hash_set<absl::string_view> seen;
  seen.reserve(v.tokens.size() + v.special_tokens.size());
  LOCKSTEP_RETURN_IF_ERROR(ValidateTokens(v, &seen));
  for (size_t i = 0; i < v.special_tokens.size(); ++i) {
    const std::string& name = v.special_tokens[i];
    const std::string what =
        absl::StrCat("special token ", i, ", \"", absl::CHexEscape(name.substr(0, 100)), "\", ");
    if (name.empty() || name.size() > kTokenBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, "has ", name.size(), " bytes; expected 1 to ", kTokenBytesMax));
    }
    if (!IsUtf8(name)) return absl::InvalidArgumentError(absl::StrCat(what, "is not UTF-8"));
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(what, "is a token already"));
    }
  }
  if (v.end_of_text < static_cast<int64_t>(v.tokens.size()) || v.end_of_text >= v.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the end of text is token ", v.end_of_text,
                                                   "; expected a special one, ", v.tokens.size(),
                                                   " to ", v.size() - 1));
  }
  return absl::OkStatus();
}

std::string SerializeVocabulary(const Vocabulary& v) {
  std::string out =
      absl::StrCat(kFirstLine, "\nsplit ", kSplitName, "\ntokens ", v.tokens.size(), "\nspecial ",
                   v.special_tokens.size(), "\nend-of-text ", v.end_of_text, "\n");
  for (const auto* entries : {&v.tokens, &v.special_tokens}) {
    for (const std::string& entry : *entries) {
      absl::StrAppend(&out, Base64Encode(AsBytes(entry)), "\n");
    }
  }
  return out;
}

namespace {

// Takes a tokenizer file apart line by line; every error names the line.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}

  absl::Status Error(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat("line ", line_, ": ", what));
  }

  absl::StatusOr<absl::string_view> Line() {
    ++line_;
    const size_t end = rest_.find('\n');
    if (end == absl::string_view::npos) {
      return Error(rest_.empty() ? "the file ends here" : "the file ends within this line");
    }
    const absl::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  absl::Status Expect(absl::string_view expected) {
    LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view line, Line());
    if (line == expected) return absl::OkStatus();
    return Error(absl::StrCat("expected \"", expected, "\", found \"",
                              absl::CHexEscape(line.substr(0, 60)), "\""));
  }

  // "KEY NUMBER", from 0 to `max`, written in the only way.
  absl::StatusOr<int64_t> Number(absl::string_view key, int64_t max) {
    LOCKSTEP_ASSIGN_OR_RETURN(absl::string_view line, Line());
    int64_t number = 0;
    if (absl::ConsumePrefix(&line, key) && absl::ConsumePrefix(&line, " ") &&
        absl::SimpleAtoi(line, &number) && number >= 0 && number <= max &&
        absl::StrCat(number) == line) {
      return number;
    }
    return Error(absl::StrCat("expected \"", key, " N\" with N up to ", max));
  }

  absl::StatusOr<std::string> Entry() {
    LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view line, Line());
    absl::StatusOr<std::string> entry = Base64Decode(line);
    if (!entry.ok()) return Error(entry.status().message());
    if (Base64Encode(AsBytes(*entry)) != line) {
      return Error("expected base64 of the standard alphabet with its padding");
    }
    return entry;
  }

  absl::Status End() const {
    if (rest_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "line ", line_ + 1, ": expected the end of the file, found ", rest_.size(), " bytes more"));
  }

 private:
  absl::string_view rest_;
  int64_t line_ = 0;
};

}  // namespace

absl::StatusOr<Vocabulary> ParseVocabulary(absl::string_view bytes) {
  Reader reader(bytes);
  Vocabulary v;
  if (!absl::StartsWith(bytes, kFirstLine)) {
    return absl::DataLossError(absl::StrCat(
        "line 1: expected \"", kFirstLine, "\", found \"", absl::CHexEscape(bytes.substr(0, 60)),
        "\"; files of other tools are taken over with `lockstep tokenizer import`"));
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.Expect(kFirstLine));
  LOCKSTEP_RETURN_IF_ERROR(reader.Expect(absl::StrCat("split ", kSplitName)));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t tokens, reader.Number("tokens", kVocabularyMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t special, reader.Number("special", kVocabularyMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t end_of_text,
                            reader.Number("end-of-text", kVocabularyMax));
  v.end_of_text = static_cast<int32_t>(end_of_text);
  for (int64_t i = 0; i < tokens + special; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string entry, reader.Entry());
    (i < tokens ? v.tokens : v.special_tokens).push_back(std::move(entry));
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.End());
  if (absl::Status status = ValidateVocabulary(v); !status.ok()) {
    return absl::DataLossError(status.message());
  }
  return v;
}

int32_t AddSpecialToken(absl::string_view name, Vocabulary* v) {
  auto& names = v->special_tokens;
  auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) at = names.insert(names.end(), std::string(name));
  return static_cast<int32_t>(v->tokens.size() + static_cast<size_t>(at - names.begin()));
}

}  // namespace lockstep::engine
