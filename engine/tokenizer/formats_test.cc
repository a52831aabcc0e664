// SPDX-License-Identifier: Apache-2.0
//
// The formats of other tools: there and back, and what is refused. That those tools give our ids is
// tests/tokenizer_peers.
#include "engine/tokenizer/formats.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/testing/status_matchers.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/testing/tokenizers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;
using testing::SmallTokenizer;
using testing::SmallVocabulary;

const std::vector<std::string> kSpecial = {"<|endoftext|>"};

TEST(ByteLevelTest, EveryByte) {
  EXPECT_EQ(ByteLevelEncode(" a\n"), "\u0120a\u010A");
  EXPECT_EQ(ByteLevelEncode(std::string("\0\x7F\xA0\xAD\xFF", 5)),
            "\u0100\u0121\u0142\u0143\u00FF");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_THAT(ByteLevelDecode(ByteLevelEncode(one)), Optional(Eq(one)));
  }
  for (const char* bad : {" ", "\n", "\x7F", "\u0144", "\xC4", "\xC4 ", "\xFF", "\u4E00"}) {
    EXPECT_EQ(ByteLevelDecode(bad), std::nullopt) << bad;
  }
}

TEST(TiktokenTest, ThereAndBack) {
  const Vocabulary v = SmallVocabulary();
  const std::string text = ExportTiktoken(v);
  EXPECT_EQ(text.substr(0, 16), "AA== 0\nAQ== 1\nAg");
  EXPECT_THAT(ImportTiktoken(text, kSpecial), IsOkAndHolds(v));
  // The last line end may be missing.
  EXPECT_THAT(ImportTiktoken(text.substr(0, text.size() - 1), kSpecial), IsOkAndHolds(v));
}

TEST(TiktokenTest, WhatIsWrongIsNamed) {
  const std::string good = ExportTiktoken(SmallVocabulary(300));
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return ImportTiktoken(text, kSpecial).status();
  };
  const auto is = [](absl::string_view what) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(std::string(what)));
  };
  EXPECT_THAT(with("\nAQ== 1\n", "\nAQ==\n"), is("line 2: expected \"BASE64 RANK\""));
  EXPECT_THAT(with("\nAQ== 1\n", "\n\n"), is("line 2"));
  EXPECT_THAT(with("\nAQ== 1\n", "\n*Q== 1\n"), is("line 2"));
  EXPECT_THAT(with("\nAQ== 1\n", "\nAQ== 7\n"), is("line 2: expected rank 1, found \"7\""));
  EXPECT_THAT(with("\nAQ== 1\n", "\nAQ== 1 \n"), is("line 2: expected rank 1"));
  EXPECT_THAT(with("\nAQ== 1\n", "\nAQ== 1\r\n"), is("line 2: expected rank 1"));
  EXPECT_THAT(with("\nAQ== 1\n", "\nAA== 1\n"), is("was there before"));
  EXPECT_THAT(with("\nAQ== 1\n", "\n 1\n"), is("0 bytes"));
  EXPECT_THAT(ImportTiktoken("", kSpecial).status(), is("256 single bytes"));
  EXPECT_THAT(ImportTiktoken(good, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ImportTiktoken(good, {"a"}).status(), is("is a token already"));
}

TEST(HuggingFaceTest, ThereAndBack) {
  Vocabulary v = SmallVocabulary();
  AddSpecialToken("<|pad|>", &v);
  AddSpecialToken("\u00E9\"\\", &v);
  const auto tokenizer = Tokenizer::FromVocabulary(v).value();
  const std::string text = ExportHuggingFace(*tokenizer).value();
  EXPECT_THAT(ImportHuggingFace(text), IsOkAndHolds(v));
  // Laid out otherwise, with merges as pairs, and the added tokens also in the vocabulary.
  nlohmann::json file = nlohmann::json::parse(text);
  for (auto& merge : file["model"]["merges"]) {
    const std::string pair = merge;
    const size_t blank = pair.find(' ');
    merge = {pair.substr(0, blank), pair.substr(blank + 1)};
  }
  file["model"]["vocab"]["<|pad|>"] = v.tokens.size() + 1;
  EXPECT_THAT(ImportHuggingFace(file.dump(2)), IsOkAndHolds(v));
  // Another end of text, there already or not.
  EXPECT_EQ(ImportHuggingFace(text, "<|pad|>").value().end_of_text,
            static_cast<int32_t>(v.tokens.size()) + 1);
  EXPECT_EQ(ImportHuggingFace(text, "<|new|>").value().size(), v.size() + 1);
}

TEST(HuggingFaceTest, NamesThatCollideAreRefused) {
  Vocabulary v = SmallVocabulary(300);
  AddSpecialToken("\u0120", &v);  // how ByteLevel writes a blank
  EXPECT_THAT(ExportHuggingFace(*Tokenizer::FromVocabulary(v).value()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token 32")));
}

TEST(HuggingFaceTest, WhatWouldGiveOtherIdsIsRefused) {
  const nlohmann::json good =
      nlohmann::json::parse(ExportHuggingFace(*SmallTokenizer(300)).value());
  const auto with = [&good](const char* pointer, const nlohmann::json& value) {
    nlohmann::json file = good;
    file[nlohmann::json::json_pointer(pointer)] = value;
    return ImportHuggingFace(file.dump()).status();
  };
  const auto unimplemented = [](absl::string_view what) {
    return StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(std::string(what)));
  };
  EXPECT_THAT(with("/normalizer", {{"type", "NFC"}}), unimplemented("normalizer"));
  EXPECT_THAT(with("/pre_tokenizer", nullptr), unimplemented("pre_tokenizer"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+"),
              unimplemented("pre_tokenizer"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"),
              unimplemented("pre_tokenizer"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/invert", true), unimplemented("pre_tokenizer"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/1/add_prefix_space", true),
              unimplemented("pre_tokenizer"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/1/use_regex", true),
              unimplemented("pre_tokenizer"));
  EXPECT_THAT(with("/model/type", "WordPiece"), unimplemented("BPE"));
  EXPECT_THAT(with("/model/dropout", 0.1), unimplemented("dropout"));
  EXPECT_THAT(with("/model/byte_fallback", true), unimplemented("byte_fallback"));
  EXPECT_THAT(with("/model/end_of_word_suffix", "</w>"), unimplemented("end_of_word_suffix"));
  const auto bad = [](absl::string_view what) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(std::string(what)));
  };
  EXPECT_THAT(with("/model/vocab", 3), bad("model.vocab: expected an object"));
  EXPECT_THAT(with("/model/vocab/a", "x"), bad("token \"a\" has no number"));
  EXPECT_THAT(with("/model/vocab/a", -1), bad("token \"a\" has no number"));
  EXPECT_THAT(with("/model/vocab/a", 98), bad("has id 98"));
  EXPECT_THAT(with("/model/vocab/a", 4000000000u), bad("has id 4000000000"));
  EXPECT_THAT(with("/model/vocab/x y", 299), bad("ByteLevel's alphabet"));
  EXPECT_THAT(with("/model/vocab/xq", 300), bad("has id 300"));
  EXPECT_THAT(with("/added_tokens/0/id", 300), bad("has id 300; expected 299"));
  EXPECT_THAT(with("/added_tokens/0/id", -5), bad("added_tokens: expected an id"));
  EXPECT_THAT(with("/added_tokens/0/content", 5), bad("added_tokens: expected an id"));
  EXPECT_THAT(with("/added_tokens", "x"), bad("added_tokens: expected an array"));
  EXPECT_THAT(with("/added_tokens/0/content", "a"), bad("is a token already"));
  EXPECT_THAT(with("/model/merges", nullptr), bad("model.merges: expected an array"));
  EXPECT_THAT(with("/model/merges/3", "noblank"), bad("merge 3, \"noblank\""));
  EXPECT_THAT(with("/model/merges/3", {"a"}), bad("merge 3"));
  EXPECT_THAT(with("/model/merges/3", "q q"), bad("does not have"));
  EXPECT_THAT(with("/model/merges/0", good["model"]["merges"][5]), bad("in the order of the ids"));
  nlohmann::json fewer = good;
  fewer["model"]["merges"].erase(7);
  EXPECT_THAT(ImportHuggingFace(fewer.dump()).status(), bad("no merge makes token 263"));
}

TEST(HuggingFaceTest, TokensThatNoMergeMakesNeedIgnoreMerges) {
  Vocabulary v = SmallVocabulary(257);
  v.tokens.push_back("xyz");
  v.end_of_text = 257;
  const std::string text = ExportHuggingFace(*Tokenizer::FromVocabulary(v).value()).value();
  EXPECT_THAT(ImportHuggingFace(text), IsOkAndHolds(v));
  EXPECT_THAT(ImportHuggingFace(absl::StrReplaceAll(
                  text, {{"\"ignore_merges\":true", "\"ignore_merges\":false"}})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ignore_merges is not true")));
}

TEST(HuggingFaceTest, HostileJson) {
  const auto bad = [](absl::string_view what) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(std::string(what)));
  };
  EXPECT_THAT(ImportHuggingFace("").status(), bad("malformed at byte"));
  EXPECT_THAT(ImportHuggingFace("[]").status(), bad("expected a JSON object"));
  EXPECT_THAT(ImportHuggingFace("{\"model\":{\"vocab\":{\"a\":1,\"a\":2}}}").status(),
              bad("twice"));
  EXPECT_THAT(ImportHuggingFace(std::string(1000000, '[')).status(), bad("deeper than 16"));
  EXPECT_THAT(ImportHuggingFace("{\"x\":\"\xFF\"}").status(), bad("malformed"));
  EXPECT_THAT(ImportHuggingFace("{\"x\":" + std::string(50, '9') + "e999999}").status(),
              bad("malformed"));
  const std::string good = ExportHuggingFace(*SmallTokenizer(260)).value();
  for (size_t n = 0; n + 2 < good.size(); n += 13) {
    ASSERT_THAT(ImportHuggingFace(good.substr(0, n)).status(), bad("malformed")) << n;
  }
}

}  // namespace
}  // namespace lockstep::engine
