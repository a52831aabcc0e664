// SPDX-License-Identifier: Apache-2.0
//
// UTF-8: what is valid, and what becomes of what is not.
#include "engine/corpus/utf8.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

TEST(Utf8Test, ReplacesMaximalSubparts) {
  // The Unicode Standard 15.0, tables 3-8 to 3-11 (section 3.9): ill-formed sequences and what
  // becomes of them.
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xC3"), "a" + r);
  EXPECT_EQ(ReplaceInvalidUtf8(""), "");
}

TEST(Utf8Test, ValidityIsThatNothingIsReplaced) {
  std::mt19937 random(1);
  const uint8_t bytes[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2,
                           0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  int valid = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text;
    for (size_t n = random() % 7; n > 0; --n)
      text.push_back(static_cast<char>(bytes[random() % sizeof(bytes)]));
    const std::string mended = ReplaceInvalidUtf8(text);
    EXPECT_EQ(IsValidUtf8(text), mended == text);
    EXPECT_TRUE(IsValidUtf8(mended));
    EXPECT_EQ(ReplaceInvalidUtf8(mended), mended);
    valid += IsValidUtf8(text) ? 1 : 0;
  }
  EXPECT_GT(valid, 1000);
}

TEST(Utf8Test, EveryCodePoint) {
  for (char32_t c = 0; c < 0x110010; ++c) {
    std::string text;
    AppendUtf8(c, &text);
    const auto number = static_cast<uint32_t>(c);
    ASSERT_TRUE(IsValidUtf8(text)) << number;
    const bool scalar = c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
    ASSERT_EQ(text == "\xEF\xBF\xBD", !scalar || c == 0xFFFD) << number;
    ASSERT_EQ(text.size(), !scalar       ? 3U
                           : c < 0x80    ? 1U
                           : c < 0x800   ? 2U
                           : c < 0x10000 ? 3U
                                         : 4U)
        << number;
  }
}

TEST(Utf8Test, Latin1) { EXPECT_EQ(Latin1ToUtf8("na\xEFve \x80"), "na\xC3\xAFve \xC2\x80"); }

TEST(Utf8Test, Boundaries) {
  const std::string text = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80";  // 1, 2, 3 and 4 bytes
  const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t size = 0; size < 12; ++size)
    EXPECT_EQ(CharacterBoundary(text, size), expected[size]) << size;
}

TEST(Utf8Test, Blank) {
  EXPECT_TRUE(IsBlank(""));
  EXPECT_TRUE(IsBlank(" \t\n\v\f\r"));
  EXPECT_FALSE(IsBlank(" x "));
  EXPECT_FALSE(IsBlank(std::string(1, '\0')));
  EXPECT_FALSE(IsBlank("\xC2\xA0"));  // a no-break space is a character
}

}  // namespace
}  // namespace lockstep::engine
