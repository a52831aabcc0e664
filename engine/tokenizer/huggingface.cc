// SPDX-License-Identifier: Apache-2.0
//
// Hugging Face's tokenizer.json, written. Reading is in huggingface_import.cc.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/formats.h"
#include "engine/tokenizer/splitter.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

std::string Quote(absl::string_view text) { return nlohmann::json(std::string(text)).dump(); }

}  // namespace

absl::StatusOr<std::string> ExportHuggingFace(const Tokenizer& tokenizer) {
  const Vocabulary& v = tokenizer.vocabulary();
  std::string out = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[";
  for (size_t i = 0; i < v.special_tokens.size(); ++i) {
    absl::StrAppend(&out, i > 0 ? "," : "", "\n{\"id\":", v.tokens.size() + i,
                    ",\"content\":", Quote(v.special_tokens[i]),
                    ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                    "\"normalized\":false,\"special\":true}");
  }
  absl::StrAppend(
      &out,
      "],\n\"normalizer\":null,\n"
      "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
      "{\"type\":\"Split\",\"pattern\":{\"Regex\":",
      Quote(kSplitPattern),
      "},\"behavior\":\"Isolated\",\"invert\":false},"
      "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
      "\"use_regex\":false}]},\n"
      "\"post_processor\":null,\n"
      "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
      "\"trim_offsets\":true,\"use_regex\":false},\n"
      "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
      "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
      "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":true,\n\"vocab\":{");
  std::vector<std::string> written;
  written.reserve(v.tokens.size());
  for (const std::string& token : v.tokens) written.push_back(ByteLevelEncode(token));
  for (size_t id = 0; id < written.size(); ++id) {
    for (const std::string& name : v.special_tokens) {
      if (name != written[id]) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the special token \"", absl::CHexEscape(name),
                       "\" has the name under which tokenizer.json would hold token ", id,
                       "; give it another name"));
    }
    absl::StrAppend(&out, id > 0 ? ",\n" : "\n", Quote(written[id]), ":", id);
  }
  absl::StrAppend(&out, "},\n\"merges\":[");
  absl::string_view separator = "\n";
  for (size_t id = 256; id < written.size(); ++id) {
    const auto [left, right] = tokenizer.PairOf(static_cast<int32_t>(id));
    if (left < 0) continue;
    absl::StrAppend(&out, separator, Quote(absl::StrCat(written[left], " ", written[right])));
    separator = ",\n";
  }
  absl::StrAppend(&out, "]}}\n");
  return out;
}

}  // namespace lockstep::engine
