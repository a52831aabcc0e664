// SPDX-License-Identifier: Apache-2.0
//
// The table of character classes against PCRE2's, and the rule for well-formed UTF-8 against a
// plain decoder. With LOCKSTEP_WRITE_CHAR_CLASSES=FILE, what PCRE2 says is written as
// char_classes.inc would be.
#include "engine/tokenizer/char_classes.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/tokenizer/testing/pcre2_split.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using testing::AppendUtf8;
using testing::Pcre2;
using testing::Pcre2UnicodeVersion;

// All code points that match `pattern`, as ranges.
std::vector<std::pair<uint32_t, uint32_t>> Matching(const std::string& pattern) {
  const Pcre2 regex(pattern);
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  for (uint32_t code = 0; code < kCodePoints; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    AppendUtf8(code, &text);
    if (!regex.MatchesAt(text, 0)) continue;
    if (!ranges.empty() && ranges.back().second + 1 == code) {
      ranges.back().second = code;
    } else {
      ranges.emplace_back(code, code);
    }
  }
  return ranges;
}

void Write(std::ofstream& out, const char* name, const std::string& pattern) {
  out << "#ifdef " << name << "\n";
  std::string line;
  for (const auto& [first, last] : Matching(pattern)) {
    const std::string item = absl::StrFormat("{0x%X, 0x%X},", first, last);
    if (line.size() + item.size() > 96) {
      out << line << "\n";
      line.clear();
    }
    line += line.empty() ? item : " " + item;
  }
  out << line << "\n#endif\n";
}

TEST(CharClassesTest, AreThoseOfPcre2) {
  if (const char* path = std::getenv("LOCKSTEP_WRITE_CHAR_CLASSES"); path != nullptr) {
    std::ofstream out(path);
    out << "// SPDX-License-Identifier: Apache-2.0\n//\n"
        << "// Letters and numbers of Unicode " << Pcre2UnicodeVersion()
        << ", as ranges of code points; written by char_classes_test.cc.\n";
    Write(out, "LOCKSTEP_LETTERS", "\\p{L}");
    Write(out, "LOCKSTEP_NUMBERS", "\\p{N}");
  }
  const bool same_unicode = Pcre2UnicodeVersion() == "14.0.0";
  const Pcre2 letter("\\p{L}");
  const Pcre2 number("\\p{N}");
  const Pcre2 space("\\s");
  const CharClass* classes = CharClasses();
  int64_t counts[3] = {};
  for (uint32_t code = 0; code < kCodePoints; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    AppendUtf8(code, &text);
    CharClass expected = CharClass::kOther;
    if (letter.MatchesAt(text, 0)) expected = CharClass::kLetter;
    if (number.MatchesAt(text, 0)) expected = CharClass::kNumber;
    if (space.MatchesAt(text, 0) && code != 0x180E) expected = CharClass::kSpace;
    if (code == ' ') expected = CharClass::kBlank;
    if (code == '\r' || code == '\n') expected = CharClass::kNewline;
    const CharClass found = classes[code];
    // A later Unicode assigns code points that version 14 leaves open.
    if (found != expected && !same_unicode && found == CharClass::kOther) continue;
    ASSERT_EQ(static_cast<int>(found), static_cast<int>(expected)) << std::hex << "U+" << code;
    counts[0] += found == CharClass::kLetter;
    counts[1] += found == CharClass::kNumber;
    counts[2] += found == CharClass::kSpace;
  }
  // Unicode 14.0.0, DerivedGeneralCategory.txt: Lu + Ll + Lt + Lm + Lo, and Nd + Nl + No.
  EXPECT_EQ(counts[0], 131756);
  EXPECT_EQ(counts[1], 1791);
  EXPECT_EQ(counts[2], 22);
}

TEST(CharClassesTest, EveryCodePointIsReadBack) {
  const CharClass* classes = CharClasses();
  for (uint32_t code = 0x80; code < kCodePoints; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    AppendUtf8(code, &text);
    const Char read = MultibyteCharAt(classes, text.data(), text.data() + text.size());
    ASSERT_EQ(read.bytes, text.size()) << std::hex << code;
    ASSERT_EQ(read.char_class, classes[code]) << std::hex << code;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(MultibyteCharAt(classes, text.data(), text.data() + cut).char_class,
                CharClass::kInvalid);
    }
  }
}

// All sequences of a lead byte and edge values after it, against the ranges of Unicode's table 3-7.
TEST(CharClassesTest, IllFormedBytesAreInvalid) {
  const std::vector<int> edges = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  const auto in = [](int byte, int low, int high) { return byte >= low && byte <= high; };
  for (int lead = 0x80; lead < 0x100; ++lead) {
    for (int a : edges) {
      for (int b : edges) {
        for (int c : edges) {
          size_t expected = 1;
          bool well_formed = false;
          const auto accept = [&](size_t bytes) { expected = bytes, well_formed = true; };
          const bool b_ok = in(b, 0x80, 0xBF);
          const bool c_ok = in(c, 0x80, 0xBF);
          if (in(lead, 0xC2, 0xDF) && in(a, 0x80, 0xBF)) accept(2);
          if (lead == 0xE0 && in(a, 0xA0, 0xBF) && b_ok) accept(3);
          if (in(lead, 0xE1, 0xEC) && in(a, 0x80, 0xBF) && b_ok) accept(3);
          if (lead == 0xED && in(a, 0x80, 0x9F) && b_ok) accept(3);
          if (in(lead, 0xEE, 0xEF) && in(a, 0x80, 0xBF) && b_ok) accept(3);
          if (lead == 0xF0 && in(a, 0x90, 0xBF) && b_ok && c_ok) accept(4);
          if (in(lead, 0xF1, 0xF3) && in(a, 0x80, 0xBF) && b_ok && c_ok) accept(4);
          if (lead == 0xF4 && in(a, 0x80, 0x8F) && b_ok && c_ok) accept(4);
          const char text[] = {static_cast<char>(lead), static_cast<char>(a), static_cast<char>(b),
                               static_cast<char>(c)};
          const Char read = MultibyteCharAt(CharClasses(), text, text + 4);
          ASSERT_EQ(read.bytes, expected) << lead << " " << a << " " << b << " " << c;
          ASSERT_EQ(read.char_class != CharClass::kInvalid, well_formed);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::engine
