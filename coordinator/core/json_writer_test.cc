// SPDX-License-Identifier: Apache-2.0

#include "coordinator/core/json_writer.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {
namespace {

template <typename T>
std::string Text(const T& value) {
  JsonWriter json;
  json.Value(value);
  return json.Take();
}

TEST(JsonWriterTest, Structure) {
  JsonWriter json;
  json.BeginObject();
  json.Field("a", 1);
  json.ArrayField("b");
  json.Value(true);
  json.BeginObject();
  json.EndObject();
  json.BeginArray();
  json.EndArray();
  json.Value(uint64_t{18446744073709551615u});
  json.Value(int64_t{-5});
  json.EndArray();
  json.ObjectField("c");
  json.Field("d", std::nullopt);
  json.Field("e", std::optional<int>(7));
  json.Field("f", std::optional<std::string>());
  json.EndObject();
  json.Field("g", std::vector<std::string>{"x", "y"});
  json.EndObject();
  EXPECT_EQ(json.Take(), R"({"a":1,"b":[true,{},[],18446744073709551615,-5],)"
                         R"("c":{"d":null,"e":7,"f":null},"g":["x","y"]})");
}

TEST(JsonWriterTest, StringsOfStrangers) {
  EXPECT_EQ(Text("\"</script>\\\x01\x1f\x7f\n\r\t"), R"("\"</script>\\\u0001\u001f\u007f\n\r\t")");
  EXPECT_EQ(Text(absl::string_view("a\0b", 3)), R"("a\u0000b")");
  EXPECT_EQ(Text("gr\u00fc\u00df \u4e2d \U0001F600"), "\"gr\u00fc\u00df \u4e2d \U0001F600\"");
}

// Each byte that is no part of a character, by itself.
TEST(JsonWriterTest, WhatIsNotUtf8IsReplaced) {
  const std::string r = "\xEF\xBF\xBD";
  for (const auto& [text, clean] : std::vector<std::pair<std::string, std::string>>{
           {"a\x80z", "a" + r + "z"},
           {"\xC0\x80", r + r},                  // overlong
           {"\xE0\x9F\xBF", r + r + r},          // likewise
           {"\xED\xA0\x80", r + r + r},          // a surrogate
           {"\xF4\x90\x80\x80", r + r + r + r},  // beyond U+10FFFF
           {"\xF0\x9F\x98", r + r + r},          // cut off
           {"\xFF\xFE", r + r}}) {
    EXPECT_EQ(CleanUtf8(text), clean);
    EXPECT_EQ(nlohmann::json::parse(Text(text)).get<std::string>(), clean);
  }
}

// Any bytes make JSON, and JSON that says the same where the bytes are UTF-8.
TEST(JsonWriterTest, AnyBytes) {
  const uint64_t seed = 20261130;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 2 == 0 ? 256 : 128));
    const std::string said = nlohmann::json::parse(Text(bytes)).get<std::string>();
    ASSERT_EQ(said, CleanUtf8(bytes));
    if (round % 2 == 1) {
      ASSERT_EQ(said, bytes);
    }
  }
}

TEST(JsonWriterTest, FloatsComeBackAsTheyWere) {
  EXPECT_EQ(Text(0.1f), "0.1");
  EXPECT_EQ(Text(-0.0f), "-0");
  EXPECT_EQ(Text(std::numeric_limits<float>::quiet_NaN()), "\"nan\"");
  EXPECT_EQ(Text(std::numeric_limits<float>::infinity()), "\"inf\"");
  EXPECT_EQ(Text(-std::numeric_limits<float>::infinity()), "\"-inf\"");
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const auto back = nlohmann::json::parse(Text(value)).get<double>();
    ASSERT_EQ(std::bit_cast<uint32_t>(static_cast<float>(back)), std::bit_cast<uint32_t>(value));
  }
  JsonWriter json;
  json.Finite(std::nan(""));
  EXPECT_EQ(json.Take(), "null");
}

}  // namespace
}  // namespace lockstep::coordinator
