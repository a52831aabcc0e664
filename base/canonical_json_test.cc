// SPDX-License-Identifier: Apache-2.0
//
// The published examples of RFC 8785, and everything that is almost canonical.
#include "base/canonical_json.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

nlohmann::json Json(absl::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end());
}

struct NumberCase {
  uint64_t bits;
  const char* text;
};

// RFC 8785, appendix B, but for the rows of NaN and infinity.
constexpr NumberCase kNumbers[] = {
    {0x0000000000000000, "0"},
    {0x8000000000000000, "0"},
    {0x0000000000000001, "5e-324"},
    {0x8000000000000001, "-5e-324"},
    {0x7fefffffffffffff, "1.7976931348623157e+308"},
    {0xffefffffffffffff, "-1.7976931348623157e+308"},
    {0x4340000000000000, "9007199254740992"},
    {0xc340000000000000, "-9007199254740992"},
    {0x4430000000000000, "295147905179352830000"},
    {0x44b52d02c7e14af5, "9.999999999999997e+22"},
    {0x44b52d02c7e14af6, "1e+23"},
    {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
    {0x444b1ae4d6e2ef4e, "999999999999999700000"},
    {0x444b1ae4d6e2ef4f, "999999999999999900000"},
    {0x444b1ae4d6e2ef50, "1e+21"},
    {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
    {0x3eb0c6f7a0b5ed8d, "0.000001"},
    {0x41b3de4355555553, "333333333.3333332"},
    {0x41b3de4355555554, "333333333.33333325"},
    {0x41b3de4355555555, "333333333.3333333"},
    {0x41b3de4355555556, "333333333.3333334"},
    {0x41b3de4355555557, "333333333.33333343"},
    {0xbecbf647612f3696, "-0.0000033333333333333333"},
    {0x43143ff3c1cb0959, "1424953923781206.2"},
};

TEST(CanonicalJson, PrintsTheNumbersOfAppendixB) {
  for (const auto& [bits, text] : kNumbers) {
    const auto value = std::bit_cast<double>(bits);
    EXPECT_EQ(CanonicalNumber(value), text);
    EXPECT_THAT(CanonicalJson({{"x", value}}), IsOkAndHolds(absl::StrCat("{\"x\":", text, "}")));
  }
}

TEST(CanonicalJson, ReadsTheNumbersOfAppendixB) {
  for (const auto& [bits, text] : kNumbers) {
    const std::string json = absl::StrCat("{\"x\":", text, "}");
    const auto parsed = ParseCanonicalJson(json);
    ASSERT_THAT(parsed, IsOk());
    JsonReader reader(*parsed, "t");
    const double max = std::numeric_limits<double>::max();
    const double value = reader.Number("x", -max, max);
    EXPECT_THAT(reader.Finish(), IsOk());
    // Zero has one text, and that is +0's.
    EXPECT_EQ(std::bit_cast<uint64_t>(value), bits << 1 == 0 ? 0 : bits) << text;
  }
}

TEST(CanonicalJson, EveryNumberReadsBackAsItself) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    // Any bits, and then numbers of few digits.
    double value = std::bit_cast<double>(random());
    if (i % 2 == 1) {
      value = static_cast<double>(random() % 100000) * std::pow(10.0, random() % 60) * 1e-30;
    }
    if (!std::isfinite(value) || value == 0) continue;
    const std::string text = absl::StrCat("{\"x\":", CanonicalNumber(value), "}");
    const auto parsed = ParseCanonicalJson(text);
    ASSERT_THAT(parsed, IsOk()) << text;
    ASSERT_EQ(std::bit_cast<uint64_t>((*parsed)["x"].get<double>()), std::bit_cast<uint64_t>(value))
        << text;
  }
}

// RFC 8785, sections 3.2.2 and 3.2.4.
TEST(CanonicalJson, PrintsTheSampleOfSection322) {
  constexpr char kInput[] = R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  })";
  constexpr char kExpected[] =
      R"({"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],)"
      "\"string\":\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
  EXPECT_THAT(CanonicalJson(Json(kInput)), IsOkAndHolds(std::string(kExpected)));
  EXPECT_THAT(ParseCanonicalJson(kExpected), IsOk());
  EXPECT_THAT(ParseCanonicalJson(kInput), StatusIs(kDataLoss));
}

// RFC 8785, section 3.2.3: U+1F600 comes before U+FB33, as it does in UTF-16 but not in UTF-8.
TEST(CanonicalJson, SortsTheKeysOfSection323) {
  constexpr char kInput[] = R"({
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis"
  })";
  constexpr char kExpected[] =
      "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
      "\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\",\"\xe2\x82\xac\":\"Euro Sign\","
      "\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\","
      "\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}";
  EXPECT_THAT(CanonicalJson(Json(kInput)), IsOkAndHolds(std::string(kExpected)));
  EXPECT_THAT(ParseCanonicalJson(kExpected), IsOk());
}

TEST(CanonicalJson, EscapesEachCharacterInOneWay) {
  std::string all;
  for (int c = 0; c < 0x21; ++c) all += static_cast<char>(c);
  all += "\"\\/\x7f";
  EXPECT_THAT(
      CanonicalJson(all),
      IsOkAndHolds(std::string(
          R"("\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f)"
          R"(\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c)"
          "\\u001d\\u001e\\u001f \\\"\\\\/\x7f\"")));
}

TEST(CanonicalJson, RefusesToPrintWhatHasNoCanonicalText) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(CanonicalJson({{"x", infinity}}), StatusIs(kInvalid, HasSubstr("an infinity")));
  EXPECT_THAT(CanonicalJson({{"x", std::nan("")}}), StatusIs(kInvalid, HasSubstr("NaN")));
  EXPECT_THAT(CanonicalJson({{"x", kJsonIntegerMax}}),
              IsOkAndHolds(std::string("{\"x\":9007199254740991}")));
  EXPECT_THAT(CanonicalJson({{"x", -kJsonIntegerMax}}),
              IsOkAndHolds(std::string("{\"x\":-9007199254740991}")));
  for (const int64_t beyond : {kJsonIntegerMax + 1, -kJsonIntegerMax - 1, INT64_MIN, INT64_MAX}) {
    EXPECT_THAT(CanonicalJson({{"x", beyond}}),
                StatusIs(kInvalid, HasSubstr(absl::StrCat(beyond))));
  }
  EXPECT_THAT(CanonicalJson({{"x", UINT64_MAX}}), StatusIs(kInvalid));
  EXPECT_THAT(CanonicalJson({{"x", "\xff"}}), StatusIs(kInvalid, HasSubstr("UTF-8")));
  EXPECT_THAT(CanonicalJson({{"\xc0\x80", 1}}), StatusIs(kInvalid, HasSubstr("UTF-8")));
}

TEST(CanonicalJson, RefusesEveryOtherTextOfTheSameContent) {
  EXPECT_THAT(ParseCanonicalJson(R"({"a":1,"b":[1.5,"x"]})"), IsOk());
  for (const absl::string_view text : {R"({"a":1,"b":[1.5,"x"]} )",
                                       R"( {"a":1})",
                                       R"({"a": 1})",
                                       R"({"b":1,"a":2})",
                                       R"({"a":1,"a":1})",
                                       R"({"a":1.0})",
                                       R"({"a":1e0})",
                                       R"({"a":-0})",
                                       R"({"a":-0.0})",
                                       R"({"a":1E21})",
                                       R"({"a":1e21})",
                                       R"({"a":0.0000001})",
                                       R"({"a":1.50})",
                                       R"({"a":9007199254740993})",
                                       R"({"a":18446744073709551615})",
                                       R"({"a":0.30000000000000001})",
                                       R"({"a":"\u0041"})",
                                       R"({"a":"\/"})",
                                       R"({"a":"\u000A"})",
                                       R"({"a":"\u000F"})"}) {
    EXPECT_THAT(ParseCanonicalJson(text), StatusIs(kDataLoss, HasSubstr("differs"))) << text;
  }
}

TEST(CanonicalJson, RefusesWhatIsNoObject) {
  for (const absl::string_view text :
       {"", "[]", "1", "null", "\"a\"", "{", R"({"a":1)", R"({"a":})", R"({"a":1}{)",
        R"({"a":NaN})", R"({"a":1e999})", R"({a:1})", "{\"a\":\"\xff\"}", R"({"a":"\ud800"})"}) {
    EXPECT_THAT(ParseCanonicalJson(text), StatusIs(kDataLoss, HasSubstr("JSON object"))) << text;
  }
  EXPECT_THAT(ParseCanonicalJson("{\"a\":" + std::string(100000, '[')),
              StatusIs(kDataLoss, HasSubstr("deep")));
}

TEST(JsonReader, GivesTheValues) {
  const nlohmann::json json = {{"a", {1, 2}}, {"d", std::string(64, '0')}, {"i", -3},
                               {"n", 0.5},    {"o", {{"k", 1}}},           {"s", "text"},
                               {"w", 2}};
  JsonReader reader(json, "t");
  EXPECT_EQ(reader.Array("a", 2).size(), 2u);
  EXPECT_EQ(reader.Sha256Digest("d"), Digest());
  EXPECT_EQ(reader.Integer("i", -3, 0), -3);
  EXPECT_EQ(reader.Number("n", 0.5, 1), 0.5);
  EXPECT_EQ(reader.Number("w", 0, 2), 2.0);
  EXPECT_EQ(reader.Object("o").size(), 1u);
  EXPECT_EQ(reader.String("s", 4), "text");
  EXPECT_TRUE(reader.Has("s"));
  EXPECT_FALSE(reader.Has("t"));
  EXPECT_THAT(reader.Finish(), IsOk());
}

TEST(JsonReader, NamesWhatIsAmiss) {
  const nlohmann::json json = {{"i", 5}, {"n", 1.5}, {"s", "text"}};
  const auto error = [&](auto read) {
    JsonReader reader(json, "t");
    read(reader);
    return reader.Finish();
  };
  const auto says = [](absl::string_view key, absl::string_view expected, absl::string_view found) {
    return StatusIs(
        kDataLoss, AllOf(HasSubstr(absl::StrCat("t.", key, ": ")), HasSubstr(std::string(expected)),
                         HasSubstr(absl::StrCat("found ", found))));
  };
  EXPECT_THAT(error([](JsonReader& r) { r.Integer("i", 0, 4); }), says("i", "from 0 to 4", "5"));
  EXPECT_THAT(error([](JsonReader& r) { r.Integer("n", 0, 4); }), says("n", "integer", "number"));
  EXPECT_THAT(error([](JsonReader& r) { r.Integer("s", 0, 4); }), says("s", "integer", "string"));
  EXPECT_THAT(error([](JsonReader& r) { r.Number("n", 0.25, 1); }),
              says("n", "from 0.25 to 1", "1.5"));
  EXPECT_THAT(error([](JsonReader& r) { r.Number("s", 0, 1); }), says("s", "number", "string"));
  EXPECT_THAT(error([](JsonReader& r) { r.Number("x", 0, 1); }), says("x", "number", "nothing"));
  EXPECT_THAT(error([](JsonReader& r) { r.String("s", 3); }), says("s", "3 bytes", "4 bytes"));
  EXPECT_THAT(error([](JsonReader& r) { r.String("i", 3); }), says("i", "string", "number"));
  EXPECT_THAT(error([](JsonReader& r) { r.Sha256Digest("s"); }), says("s", "64", "something"));
  EXPECT_THAT(error([](JsonReader& r) { r.Array("i", 3); }), says("i", "array", "number"));
  EXPECT_THAT(error([](JsonReader& r) { r.Object("i"); }), says("i", "object", "number"));
  EXPECT_THAT(error([](JsonReader& r) { r.Integer("i", 0, 5); }), says("n", "no such key", "one"));
  // The first error stays.
  EXPECT_THAT(error([](JsonReader& r) {
                r.Integer("i", 0, 4);
                r.Integer("x", 0, 4);
              }),
              says("i", "from 0 to 4", "5"));
}

}  // namespace
}  // namespace lockstep
