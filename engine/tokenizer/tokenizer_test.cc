// SPDX-License-Identifier: Apache-2.0
//
// Encoding against a slow encoder that looks up bytes, the identity on every kind of input, and the
// tokenizer file.
#include "engine/tokenizer/tokenizer.h"

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "engine/tokenizer/merger.h"
#include "engine/tokenizer/splitter.h"
#include "engine/tokenizer/testing/tokenizers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::ElementsAre;
using testing::Encode;
using ::testing::HasSubstr;
using testing::RandomBytes;
using testing::SmallTokenizer;
using testing::SmallVocabulary;
using testing::TrickyTexts;

// The rule as it is written down: whole pieces, else the pair whose bytes are the token of lowest
// rank, leftmost first.
std::vector<int32_t> SlowlyEncoded(const Vocabulary& v, absl::string_view text) {
  std::map<std::string, int32_t, std::less<>> ids;
  for (size_t id = 0; id < v.tokens.size(); ++id) ids[v.tokens[id]] = static_cast<int32_t>(id);
  std::vector<int32_t> all;
  Splitter().ForEachPiece(text, [&](absl::string_view piece) {
    if (const auto at = ids.find(std::string(piece)); at != ids.end()) {
      all.push_back(at->second);
      return;
    }
    std::vector<std::string> parts;
    for (char c : piece) parts.emplace_back(1, c);
    while (true) {
      size_t best = 0;
      int32_t best_id = INT32_MAX;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto at = ids.find(parts[i] + parts[i + 1]);
        if (at != ids.end() && at->second < best_id) best = i, best_id = at->second;
      }
      if (best_id == INT32_MAX) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    for (const std::string& part : parts) all.push_back(ids.at(part));
  });
  return all;
}

TEST(TokenizerTest, ByHand) {
  Vocabulary v;
  for (int byte = 0; byte < 256; ++byte) v.tokens.emplace_back(1, static_cast<char>(byte));
  // 256 "ab", 257 "bc", 258 "abc" = ab c, 259 " abc"
  v.tokens.insert(v.tokens.end(), {"ab", "bc", "abc", " abc"});
  v.end_of_text = AddSpecialToken("<|endoftext|>", &v);
  const auto tokenizer = Tokenizer::FromVocabulary(v).value();
  EXPECT_EQ(tokenizer->vocab_size(), 261);
  EXPECT_EQ(tokenizer->end_of_text(), 260);
  EXPECT_THAT(Encode(*tokenizer, "abc bc"), ElementsAre(258, ' ', 257));
  EXPECT_THAT(Encode(*tokenizer, "abcabc abc"), ElementsAre(258, 258, 259));
  EXPECT_THAT(Encode(*tokenizer, "bbc"), ElementsAre('b', 257));
  EXPECT_THAT(tokenizer->Decode({259, 260, 'x'}), IsOkAndHolds(" abc<|endoftext|>x"));
  EXPECT_THAT(tokenizer->Decode({1, 261}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("id 261 at 1")));
  EXPECT_THAT(tokenizer->Decode({-1}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(tokenizer->PairOf(258), std::make_pair(256, int32_t{'c'}));
  EXPECT_EQ(tokenizer->PairOf(259), std::make_pair(int32_t{' '}, 258));
  EXPECT_EQ(tokenizer->PairOf('a'), std::make_pair(-1, -1));
}

TEST(TokenizerTest, ATokenThatNoMergeMakesIsAWholePiece) {
  Vocabulary v;
  for (int byte = 0; byte < 256; ++byte) v.tokens.emplace_back(1, static_cast<char>(byte));
  v.tokens.insert(v.tokens.end(), {"xyz", "xyzw"});
  v.end_of_text = AddSpecialToken("<|endoftext|>", &v);
  const auto tokenizer = Tokenizer::FromVocabulary(v).value();
  EXPECT_EQ(tokenizer->PairOf(256), std::make_pair(-1, -1));
  EXPECT_THAT(Encode(*tokenizer, "xyz"), ElementsAre(256));
  EXPECT_THAT(Encode(*tokenizer, "xyzw"), ElementsAre(257));
  EXPECT_THAT(Encode(*tokenizer, "xyzv"), ElementsAre('x', 'y', 'z', 'v'));
}

TEST(TokenizerTest, AsTheSlowEncoder) {
  for (int64_t size : {257, 300, 700}) {
    const auto tokenizer = SmallTokenizer(size);
    std::vector<std::string> texts = TrickyTexts();
    for (uint64_t i = 0; i < 200; ++i) texts.push_back(RandomBytes(i, 100));
    for (const std::string& text : texts) {
      ASSERT_EQ(Encode(*tokenizer, text), SlowlyEncoded(tokenizer->vocabulary(), text))
          << ::testing::PrintToString(text);
    }
  }
}

// Vocabularies that no training gives: any strings over two letters, in any order.
TEST(TokenizerTest, AnyVocabularyAsTheSlowEncoder) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    uint64_t draw = 0;
    const auto below = [&](uint64_t n) { return kernels::RandomBelow(seed, 9, draw++, n); };
    const auto word = [&](uint64_t longest) {
      std::string text;
      for (uint64_t k = 2 + below(longest - 1); k > 0; --k)
        text += static_cast<char>('a' + below(2));
      return text;
    };
    Vocabulary v;
    for (int byte = 0; byte < 256; ++byte) v.tokens.emplace_back(1, static_cast<char>(byte ^ 5));
    for (int i = 0; i < 30; ++i) {
      const std::string token = word(7);
      if (std::count(v.tokens.begin(), v.tokens.end(), token) == 0) v.tokens.push_back(token);
    }
    v.end_of_text = AddSpecialToken("<|endoftext|>", &v);
    const auto tokenizer = Tokenizer::FromVocabulary(v).value();
    for (int i = 0; i < 20; ++i) {
      const std::string text = word(i < 15 ? 20 : 150);
      ASSERT_EQ(Encode(*tokenizer, text), SlowlyEncoded(v, text)) << "seed " << seed << " " << text;
    }
  }
}

TEST(TokenizerTest, DecodeUndoesEncode) {
  const auto tokenizer = SmallTokenizer();
  std::vector<std::string> texts = TrickyTexts();
  for (uint64_t i = 0; i < 100; ++i) texts.push_back(RandomBytes(1000 + i, i * 17));
  std::string all_bytes;
  for (int round = 0; round < 2; ++round) {
    for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  }
  texts.push_back(all_bytes);
  for (const std::string& text : texts) {
    EXPECT_THAT(tokenizer->Decode(Encode(*tokenizer, text)), IsOkAndHolds(text));
  }
}

// Time that grows with the square of a piece would be hours here.
TEST(TokenizerTest, PiecesOfMegabytes) {
  const auto tokenizer = SmallTokenizer();
  std::string word;
  for (uint64_t i = 0; word.size() < 1'000'000; ++i) {
    static constexpr const char* kParts[] = {"the", "qu", "ing", "z", "other", "e"};
    word += kParts[kernels::RandomBelow(5, 5, i, 6)];
  }
  EXPECT_LT(Encode(*tokenizer, word).size(), word.size() * 2 / 3);
  std::vector<std::string> texts = {word};
  for (const char c : {' ', 'a', '=', '7', '\n', '\0', '\xFF', '\xC3'}) {
    texts.emplace_back(1'000'000, c);
  }
  for (const std::string& text : texts) {
    EXPECT_TRUE(tokenizer->Decode(Encode(*tokenizer, text)).value() == text) << text.substr(0, 1);
  }
}

// Long and short pieces take different ways; around the bound between them both must agree with the
// rule.
TEST(TokenizerTest, PiecesOfEveryLength) {
  const auto tokenizer = SmallTokenizer();
  std::string word;
  for (uint64_t i = 0; i < 150; ++i) word += "thequickbrown"[kernels::RandomBelow(6, 6, i, 13)];
  for (size_t n = 1; n <= word.size(); ++n) {
    const std::string text = word.substr(0, n) + " x";
    ASSERT_EQ(Encode(*tokenizer, text), SlowlyEncoded(tokenizer->vocabulary(), text)) << n;
  }
}

TEST(TokenizerTest, AllTextsOnAnyThreads) {
  const auto tokenizer = SmallTokenizer();
  std::vector<std::string> texts = TrickyTexts();
  for (uint64_t i = 0; i < 300; ++i) texts.push_back(RandomBytes(i, 400));
  const std::vector<absl::string_view> views(texts.begin(), texts.end());
  std::vector<std::vector<int32_t>> expected;
  for (absl::string_view text : views) expected.push_back(Encode(*tokenizer, text));
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(tokenizer->EncodeAll(views, pool), expected) << threads;
  }
}

TEST(TokenizerTest, EncodeAppends) {
  const auto tokenizer = SmallTokenizer();
  std::vector<int32_t> ids = {7};
  tokenizer->Encode("x", &ids);
  tokenizer->Encode("", &ids);
  EXPECT_THAT(ids, ElementsAre(7, 'x'));
}

TEST(TokenizerFileTest, LoadsWhatWasWritten) {
  const Vocabulary v = SmallVocabulary();
  const std::string bytes = SerializeVocabulary(v);
  EXPECT_THAT(ParseVocabulary(bytes), IsOkAndHolds(v));
  const std::string path = ::testing::TempDir() + "/tokenizer_test.lkt";
  ASSERT_THAT(WriteFileDurably(path, AsBytes(bytes)), IsOk());
  const auto tokenizer = Tokenizer::Load(path).value();
  EXPECT_EQ(tokenizer->vocabulary(), v);
  EXPECT_EQ(tokenizer->digest(), Sha256(AsBytes(bytes)));
  EXPECT_THAT(Tokenizer::Load(path + ".none"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(TokenizerFileTest, EveryTruncationIsAnError) {
  const std::string bytes = SerializeVocabulary(SmallVocabulary(270));
  for (size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_THAT(ParseVocabulary(bytes.substr(0, n)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line")))
        << n;
  }
}

TEST(TokenizerFileTest, WhatIsWrongIsNamed) {
  const std::string good = SerializeVocabulary(SmallVocabulary(270));
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string bytes = good;
    bytes.replace(bytes.find(from), from.size(), to);
    return ParseVocabulary(bytes).status();
  };
  const auto is = [](absl::string_view what) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(std::string(what)));
  };
  EXPECT_THAT(with("lockstep-tokenizer 1", "lockstep-tokenizer 2"), is("line 1: expected"));
  EXPECT_THAT(with("llama3-unicode14", "gpt2"), is("line 2: expected"));
  EXPECT_THAT(with("tokens 269", "tokens 0269"), is("line 3: expected"));
  EXPECT_THAT(with("tokens 269", "tokens -1"), is("line 3: expected"));
  EXPECT_THAT(with("tokens 269", "tokens 99999999999999999999"), is("line 3: expected"));
  EXPECT_THAT(with("tokens 269", "tokens 1048577"), is("line 3: expected"));
  EXPECT_THAT(with("tokens 269", "tokens 270"), is("the file ends here"));
  EXPECT_THAT(with("tokens 269", "tokens 268"), is("expected the end of the file"));
  EXPECT_THAT(with("end-of-text 269", "end-of-text 5"), is("end of text"));
  EXPECT_THAT(with("\nAA==\n", "\nAA=\n"), is("line 6"));
  EXPECT_THAT(with("\nAA==\n", "\nAA\n"), is("line 6"));
  EXPECT_THAT(with("\nAA==\n", "\n\n"), is("has 0 bytes"));
  EXPECT_THAT(with("\nAA==\n", "\nAQ==\n"), is("was there before"));
  EXPECT_THAT(with("\nAA==\n", "\nAAA=\n"), is("first 256"));
  EXPECT_THAT(with("\nPHxlbmRvZnRleHR8Pg==\n", "\n/w==\n"), is("not UTF-8"));
  EXPECT_THAT(with("\nPHxlbmRvZnRleHR8Pg==\n", "\nYQ==\n"), is("is a token already"));
  EXPECT_THAT(ParseVocabulary(good + "x").status(), is("expected the end of the file"));
  EXPECT_THAT(ParseVocabulary("").status(), is("line 1: expected"));
}

TEST(ValidateVocabularyTest, Bounds) {
  Vocabulary v = SmallVocabulary(270);
  v.tokens.emplace_back(kTokenBytesMax, 'q');
  v.end_of_text = 270;
  EXPECT_THAT(ValidateVocabulary(v), IsOk());
  v.tokens.back() += 'q';
  EXPECT_THAT(ValidateVocabulary(v),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1025 bytes")));
  v.tokens.resize(255);
  EXPECT_THAT(ValidateVocabulary(v), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::engine
