// SPDX-License-Identifier: Apache-2.0
//
// The splitter against PCRE2: every sequence of up to six characters out of one or two of each kind
// that the pattern tells apart, every code point between neighbours of each kind, random text, the
// documents of a corpus; and pieces written by hand.
#include "engine/tokenizer/splitter.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/corpus/document_store.h"
#include "engine/tokenizer/testing/pcre2_split.h"
#include "engine/tokenizer/testing/sample.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

using testing::AppendUtf8;
using ::testing::ElementsAre;
using testing::Pcre2;
using testing::Pcre2Split;
using testing::Pcre2SplitPattern;
using testing::Split;

TEST(SplitterTest, PiecesByHand) {
  EXPECT_THAT(Split(""), ElementsAre());
  EXPECT_THAT(Split("Hello, world"), ElementsAre("Hello", ",", " world"));
  EXPECT_THAT(Split("I'll don't WE'VE 'sun"),
              ElementsAre("I", "'ll", " don", "'t", " WE", "'VE", " '", "sun"));
  EXPECT_THAT(Split("1234567 8"), ElementsAre("123", "456", "7", " ", "8"));
  EXPECT_THAT(Split("a  b   c "), ElementsAre("a", " ", " b", "  ", " c", " "));
  EXPECT_THAT(Split("x\r\n\r\n  y\n"), ElementsAre("x", "\r\n\r\n", " ", " y", "\n"));
  EXPECT_THAT(Split(" \n \t\n  z"), ElementsAre(" \n \t\n", " ", " z"));
  EXPECT_THAT(Split("if (a) {\n\treturn;\n}"),
              ElementsAre("if", " (", "a", ")", " {\n", "\treturn", ";\n", "}"));
  // A no-break space goes before a letter as a blank does, and is white space before a number.
  EXPECT_THAT(Split("a\u00A0b\u00A0"
                    "1"),
              ElementsAre("a", "\u00A0b", "\u00A0", "1"));
  EXPECT_THAT(Split("a\u2029b\u2029\u2029"), ElementsAre("a", "\u2029b", "\u2029\u2029"));
  // U+180E has not been white space since Unicode 6.3.
  EXPECT_THAT(Split("\u1820\u180E \u1820"), ElementsAre("\u1820", "\u180E", " \u1820"));
  // Combining marks are no letters.
  EXPECT_THAT(Split("Vie\u0323\u0302t"), ElementsAre("Vie", "\u0323\u0302", "t"));
  EXPECT_THAT(Split("\U0001F468\u200D\U0001F469 x"),
              ElementsAre("\U0001F468\u200D\U0001F469", " x"));
  EXPECT_THAT(Split(std::string("a\0b", 3)), ElementsAre("a", std::string("\0b", 2)));
}

TEST(SplitterTest, BytesThatAreNotUtf8AreAPieceAndAnEdge) {
  EXPECT_THAT(Split("ab\xFF\xFE"
                    "cd"),
              ElementsAre("ab", "\xFF\xFE", "cd"));
  EXPECT_THAT(Split("a  \xC3 b"), ElementsAre("a", "  ", "\xC3", " b"));
  EXPECT_THAT(Split("\xE2\x82 \xE2\x82\xAC"), ElementsAre("\xE2\x82", " \xE2\x82\xAC"));
  EXPECT_THAT(Split("\xED\xA0\x80x"), ElementsAre("\xED\xA0\x80", "x"));
}

// Of each kind one character or two: letters that contractions know and others, both cases,
// numbers, white space of one, two and three bytes, line ends, signs.
TEST(SplitterTest, EverySequenceOfKindsAsPcre2) {
  const Pcre2 regex(Pcre2SplitPattern());
  const auto compare_all = [&regex](const std::vector<std::string>& kinds, int length) {
    std::vector<size_t> digits(length, 0);
    while (true) {
      std::string text;
      for (size_t digit : digits) text += kinds[digit];
      ASSERT_EQ(Split(text), Pcre2Split(regex, text)) << ::testing::PrintToString(text);
      int i = 0;
      while (i < length && ++digits[i] == kinds.size()) digits[i++] = 0;
      if (i == length) return;
    }
  };
  const std::vector<std::string> all = {"'",      "s",      "T",  "r",      "E",      "v",
                                        "l",      "m",      "d",  "\u017F", "z",      "\u00E9",
                                        "1",      "\u0663", " ",  "\t",     "\u0085", "\u00A0",
                                        "\u2029", "\r",     "\n", "!",      "\u0301", "\U0001F600"};
  for (int length = 1; length <= 3; ++length) compare_all(all, length);
  const std::vector<std::string> fewer = {"'", "s", "\u00E9", "1", " ", "\u00A0", "\n", "!"};
  for (int length = 4; length <= 6; ++length) compare_all(fewer, length);
}

TEST(SplitterTest, EveryCodePointBetweenNeighboursAsPcre2) {
  const Pcre2 regex(Pcre2SplitPattern());
  const bool same_unicode = testing::Pcre2UnicodeVersion() == "14.0.0";
  const CharClass* classes = CharClasses();
  const Pcre2 other("[^\\p{L}\\p{N}\\s]");
  for (uint32_t code = 0; code < kCodePoints; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    // Planes without characters: some of them. CharClassesTest looks at every code point.
    if (code >= 0x40000 && code / 0x10000 != 14 && code % 61 != 0) continue;
    std::string c;
    AppendUtf8(code, &c);
    if (!same_unicode && classes[code] == CharClass::kOther && !other.MatchesAt(c, 0)) continue;
    // All neighbours at once: each kind before it and after it.
    const std::string text = absl::StrCat("a", c, "a ", c, " 1", c, "1!", c, "!\n", c, "\n'", c,
                                          "'s", c, c, "  ", c, "\u00A0", c, "t", c, c, c, c, "!");
    ASSERT_EQ(Split(text), Pcre2Split(regex, text)) << std::hex << "U+" << code;
  }
}

TEST(SplitterTest, RandomTextAsPcre2) {
  const Pcre2 regex(Pcre2SplitPattern());
  const uint64_t seed = 20240611;
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return kernels::RandomBelow(seed, 0, draw++, n); };
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const uint64_t length = below(60);
    for (uint64_t i = 0; i < length; ++i) {
      static constexpr uint32_t kBases[] = {0x20, 0x20, 0x60, 0x400, 0x2000, 0x3000, 0x4E00};
      AppendUtf8(kBases[below(7)] + static_cast<uint32_t>(below(64)), &text);
    }
    ASSERT_EQ(Split(text), Pcre2Split(regex, text)) << ::testing::PrintToString(text);
  }
}

// Text as it comes: the built-in sample, and in LOCKSTEP_CORPUS, a folder of ingested sources, all
// of their documents.
TEST(SplitterTest, DocumentsAsPcre2) {
  const Pcre2 regex(Pcre2SplitPattern());
  int64_t compared = 0;
  const auto compare = [&](const std::string& name, const std::string& text) {
    ASSERT_EQ(Split(text), Pcre2Split(regex, text)) << name;
    ++compared;
  };
  for (const auto& [name, text] : testing::SampleDocuments()) compare(name, text);
  EXPECT_EQ(compared, 249);
  const char* folder = std::getenv("LOCKSTEP_CORPUS");
  if (folder == nullptr) return;
  for (const auto& source : std::filesystem::directory_iterator(folder)) {
    const DocumentStore store = DocumentStore::Open(source.path()).value();
    for (int64_t part = 0; part < store.parts(); ++part) {
      const std::vector<Document> documents = store.ReadPart(part).value();
      for (const Document& document : documents) compare(document.name, document.text);
    }
  }
  std::cout << compared << " documents\n";
}

// Invalid bytes cut the text: the pieces are those of the stretches between them.
TEST(SplitterTest, RandomBytesAreStretchesOfText) {
  const Pcre2 regex(Pcre2SplitPattern());
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return kernels::RandomBelow(7, 1, draw++, n); };
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    std::vector<std::string> expected;
    std::string stretch;
    for (uint64_t i = below(8); i > 0; --i) {
      stretch.clear();
      for (uint64_t k = below(6); k > 0; --k) stretch += "a  \n'1"[below(6)];
      const std::string bad(1 + below(3), "\xFF\xC0\x80\xF8"[below(4)]);
      for (std::string& piece : Pcre2Split(regex, stretch)) expected.push_back(std::move(piece));
      if (stretch.empty() && !expected.empty()) {
        expected.back() += bad;  // joins the run of bad bytes before it
      } else {
        expected.push_back(bad);
      }
      text += stretch + bad;
    }
    ASSERT_EQ(Split(text), expected) << ::testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace lockstep::engine
