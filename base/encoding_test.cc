// SPDX-License-Identifier: Apache-2.0
//
// Hexadecimal and base64: the vectors of RFC 4648 section 10, round trips, and all that is refused.

#include "base/encoding.h"

#include <string>

#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Every byte value, then again from another start, so that all alignments of base64 occur.
std::string AllBytes() {
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i * 5 + i / 256);
  return bytes;
}

TEST(Hex, KnownTexts) {
  EXPECT_EQ(HexEncode(AsBytes("")), "");
  EXPECT_EQ(HexEncode(AsBytes("foobar")), "666f6f626172");
  EXPECT_EQ(HexEncode(AsBytes("\x01\xab\xff")), "01abff");
  EXPECT_THAT(HexDecode("666F6f626172"), IsOkAndHolds("foobar"));
  EXPECT_THAT(HexDecode(""), IsOkAndHolds(""));
}

TEST(Hex, RoundTrip) {
  const std::string bytes = AllBytes();
  EXPECT_THAT(HexDecode(HexEncode(AsBytes(bytes))), IsOkAndHolds(bytes));
}

TEST(Hex, Refuses) {
  EXPECT_THAT(HexDecode("abc"), StatusIs(kInvalid, HasSubstr("even number")));
  EXPECT_THAT(HexDecode("ab0g"), StatusIs(kInvalid, HasSubstr("position 3, found byte 0x67")));
  EXPECT_THAT(HexDecode("0x"), StatusIs(kInvalid, HasSubstr("position 1")));
  // Of the 256 byte values, exactly the 22 digits pass.
  int digits = 0;
  for (int c = 0; c < 256; ++c) digits += HexDecode(std::string("0") + static_cast<char>(c)).ok();
  EXPECT_EQ(digits, 22);
}

struct Base64Case {
  absl::string_view bytes;
  absl::string_view text;
};

TEST(Base64, VectorsOfRfc4648) {
  for (const Base64Case& c : {Base64Case{"", ""},
                              {"f", "Zg=="},
                              {"fo", "Zm8="},
                              {"foo", "Zm9v"},
                              {"foob", "Zm9vYg=="},
                              {"fooba", "Zm9vYmE="},
                              {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(Base64Encode(AsBytes(c.bytes)), c.text);
    EXPECT_THAT(Base64Decode(c.text), IsOkAndHolds(std::string(c.bytes)));
    const size_t digits = c.text.find_last_not_of('=') + 1;
    EXPECT_THAT(Base64Decode(c.text.substr(0, digits)), IsOkAndHolds(std::string(c.bytes)));
  }
}

TEST(Base64, RoundTripInBothAlphabets) {
  const std::string all = AllBytes();
  for (size_t size : {0, 1, 2, 3, 4, 5, 255, 1022, 1023, 1024}) {
    const std::string bytes = all.substr(0, size);
    std::string text = Base64Encode(AsBytes(bytes));
    EXPECT_EQ(text.size(), (size + 2) / 3 * 4);
    EXPECT_THAT(Base64Decode(text), IsOkAndHolds(bytes));
    for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    EXPECT_THAT(Base64Decode(text), IsOkAndHolds(bytes));
    while (!text.empty() && text.back() == '=') text.pop_back();
    EXPECT_THAT(Base64Decode(text), IsOkAndHolds(bytes));
  }
}

TEST(Base64, Refuses) {
  EXPECT_THAT(Base64Decode("A"), StatusIs(kInvalid, HasSubstr("cut short")));
  EXPECT_THAT(Base64Decode("Zm9vY"), StatusIs(kInvalid, HasSubstr("cut short")));
  EXPECT_THAT(Base64Decode("+-AA"), StatusIs(kInvalid, HasSubstr("mixes")));
  EXPECT_THAT(Base64Decode("Zh=="), StatusIs(kInvalid, HasSubstr("past its last byte")));
  EXPECT_THAT(Base64Decode("Zm9="), StatusIs(kInvalid, HasSubstr("past its last byte")));
  EXPECT_THAT(Base64Decode("Zg="), StatusIs(kInvalid, HasSubstr("position 2, found byte 0x3d")));
  for (const char* text : {"=", "==", "===", "====", "A===", "Zg==Zg==", "Zm9v ", " Zm9v", "Zm9v\n",
                           "Zm 9", "Zm9v====", "Z\xc3\xa9v"}) {
    EXPECT_THAT(Base64Decode(text), StatusIs(kInvalid)) << text;
  }
  // Of the 256 byte values, the 64 digits and two more of the other alphabet pass.
  int digits = 0;
  for (int c = 0; c < 256; ++c)
    digits += Base64Decode(std::string("AAA") + static_cast<char>(c)).ok();
  EXPECT_EQ(digits, 66 + 1);  // and '=', as padding
}

}  // namespace
}  // namespace lockstep
