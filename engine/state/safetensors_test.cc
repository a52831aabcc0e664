// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files: what is written is read back, other writers' headers are understood, and every
// lie that a stranger's header can tell is refused by its name.
#include "engine/state/safetensors.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

SafetensorsHeader Example() {
  SafetensorsHeader header;
  header.entries = {{.name = "b", .type = TensorType::kF32, .shape = {3, 2}},
                    {.name = "a\"\xc3\xa9", .type = TensorType::kBf16, .shape = {5}},
                    {.name = "scalar", .type = TensorType::kF32, .shape = {}},
                    {.name = "none", .type = TensorType::kBf16, .shape = {4, 0}}};
  header.metadata = {{"format", "pt"}};
  return header;
}

std::string LittleEndian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

std::string FileOf(absl::string_view json, absl::string_view data) {
  return absl::StrCat(LittleEndian(json.size()), json, data);
}

TEST(Safetensors, WhatIsEncodedIsParsed) {
  SafetensorsHeader header = Example();
  const std::string bytes = EncodeSafetensorsHeader(header);
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_EQ(bytes.substr(0, 8), LittleEndian(bytes.size() - 8));
  EXPECT_EQ(header.entries[0].begin, 0u);
  EXPECT_EQ(header.entries[0].end, 24u);
  EXPECT_EQ(header.entries[1].end, 34u);
  EXPECT_EQ(header.entries[2].end, 38u);
  EXPECT_EQ(header.entries[3].end, 38u);
  EXPECT_THAT(ParseSafetensorsHeader(bytes.substr(8)), IsOkAndHolds(header));
}

// As other programs write it: keys and tensors in any order, spaces, metadata anywhere.
TEST(Safetensors, AnotherWritersHeader) {
  const auto header = ParseSafetensorsHeader(
      R"( {"y": {"data_offsets": [8, 12], "dtype": "BF16", "shape": [1, 2]}, )"
      R"("__metadata__": {"k": "v", "l": ""},)"
      "\n\t"
      R"("x":{"shape":[2],"dtype":"F32","data_offsets":[0,8]}}   )");
  ASSERT_THAT(header, IsOk());
  ASSERT_EQ(header->entries.size(), 2u);
  EXPECT_EQ(header->entries[0].name, "x");
  EXPECT_EQ(header->entries[1],
            (SafetensorsEntry{
                .name = "y", .type = TensorType::kBf16, .shape = {1, 2}, .begin = 8, .end = 12}));
  EXPECT_THAT(header->metadata, UnorderedElementsAre(Pair("k", "v"), Pair("l", "")));
}

TEST(Safetensors, NoTensorsAreAHeaderToo) {
  const auto header = ParseSafetensorsHeader("{}");
  ASSERT_THAT(header, IsOk());
  EXPECT_THAT(header->entries, IsEmpty());
}

std::string Tensor(absl::string_view name, absl::string_view dtype, absl::string_view shape,
                   absl::string_view offsets) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[", shape,
                      "],\"data_offsets\":[", offsets, "]}");
}
std::string Header(const std::vector<std::string>& tensors) {
  std::string json = "{";
  for (size_t i = 0; i < tensors.size(); ++i) absl::StrAppend(&json, i > 0 ? "," : "", tensors[i]);
  return json + "}";
}

TEST(Safetensors, HostileHeadersAreRefusedByName) {
  const std::string two_words = Tensor("a", "F32", "2", "0,8");
  struct Case {
    std::string json;
    std::vector<std::string> says;
  };
  const std::vector<Case> cases = {
      // Not a header at all.
      {"", {"expected JSON"}},
      {"[]", {"expected an object", "an array"}},
      {"7", {"expected an object", "a number"}},
      {"\"a\"", {"expected an object", "a string"}},
      {"null", {"expected an object", "null"}},
      {"true", {"expected an object", "a boolean"}},
      {"{", {"expected JSON"}},
      {"{} {}", {"expected JSON"}},
      {Header({two_words}) + "x", {"expected JSON"}},
      {Header({two_words}) + std::string(1, '\0'), {"expected JSON"}},
      {Header({two_words}) + std::string("\0x", 2), {"expected JSON"}},
      {"{\"\xff\":{}}", {"expected JSON"}},
      {"{\"a\":1}", {"tensor \"a\"", "dtype, shape and data_offsets", "a number"}},
      {"{\"a\":null}", {"tensor \"a\"", "null"}},
      {"{\"a\":\"F32\"}", {"tensor \"a\"", "a string"}},
      {"{\"a\":[]}", {"tensor \"a\"", "an array"}},
      // Deep nesting is refused at the first level too many, and costs no stack.
      {"{\"a\":{\"shape\":{}}}", {"tensor \"a\"", "an object"}},
      {"{\"a\":{\"shape\":[[2]]}}", {"tensor \"a\"", "an array"}},
      {"{\"a\":{\"dtype\":[]}}", {"tensor \"a\"", "an array"}},
      {std::string(100'000, '['), {"expected an object", "an array"}},
      {"{\"a\":{\"shape\":" + std::string(100'000, '['), {"an array"}},
      {"{\"__metadata__\":{\"k\":{}}}", {"an object"}},
      {"{\"__metadata__\":{\"k\":[]}}", {"an array"}},
      {"{\"__metadata__\":{\"k\":1}}", {"a number"}},
      {"{\"__metadata__\":[]}", {"an array"}},
      // Fields.
      {"{\"a\":{}}", {"tensor \"a\"", "expected dtype, shape and data_offsets", "fewer"}},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", {"tensor \"a\"", "fewer"}},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}",
       {"expected dtype, shape or data_offsets", "found x"}},
      {Header({Tensor("a", "F64", "1", "0,8")}), {"expected dtype BF16 or F32", "found F64"}},
      {Header({Tensor("a", "f32", "2", "0,8")}), {"expected dtype BF16 or F32", "found f32"}},
      {Header({Tensor("a", "I8", "8", "0,8")}), {"expected dtype BF16 or F32"}},
      {Header({Tensor("a", "", "8", "0,8")}), {"expected dtype BF16 or F32"}},
      {"{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", {"a number"}},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", {"a number"}},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":\"2\",\"data_offsets\":[0,8]}}", {"a string"}},
      // Twice the same key, at each level.
      {Header({two_words, Tensor("a", "F32", "2", "8,16")}), {"each name once", "found a"}},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", {"each name once"}},
      {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", {"each key once", "found k"}},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
       {"each key once", "found dtype"}},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}",
       {"each key once", "found shape"}},
      // Numbers.
      {Header({Tensor("a", "F32", "-2", "0,8")}), {"a negative number"}},
      {Header({Tensor("a", "F32", "2.0", "0,8")}), {"a fraction"}},
      {Header({Tensor("a", "F32", "2e0", "0,8")}), {"a fraction"}},
      {Header({Tensor("a", "F32", "18446744073709551618", "0,8")}), {"a fraction"}},
      {Header({Tensor("a", "F32", "281474976710657", "0,8")}), {"at most 2^48"}},
      {Header({Tensor("a", "F32", "\"2\"", "0,8")}), {"a string"}},
      {Header({Tensor("a", "F32", "1,1,1,1,1,1,1,1,1", "0,4")}), {"at most 8 numbers"}},
      {Header({Tensor("a", "F32", "2", "0")}), {"two data_offsets", "found 1"}},
      {Header({Tensor("a", "F32", "2", "0,8,8")}), {"two data_offsets", "found 3"}},
      {Header({Tensor("a", "F32", "2", "")}), {"two data_offsets", "found 0"}},
      // Products that do not fit: 2^48 bytes and 4, 2^64 and 4, 2^96.
      {Header({Tensor("a", "F32", "70368744177665", "0,8")}), {"at most 2^48 bytes"}},
      {Header({Tensor("a", "F32", "4294967296,4294967297", "0,4")}), {"at most 2^48 bytes"}},
      {Header({Tensor("a", "BF16", "281474976710656,281474976710656,0", "0,0")}),
       {"at most 2^48 bytes"}},
      // Sizes and places.
      {Header({Tensor("a", "F32", "2", "0,7")}), {"data_offsets 8 bytes apart", "found 0 and 7"}},
      {Header({Tensor("a", "F32", "2", "8,0")}), {"data_offsets 8 bytes apart", "found 8 and 0"}},
      {Header({Tensor("a", "BF16", "2", "0,8")}), {"data_offsets 4 bytes apart"}},
      {Header({Tensor("a", "F32", "0", "0,4")}), {"data_offsets 0 bytes apart"}},
      {Header({Tensor("a", "F32", "", "0,8")}), {"data_offsets 4 bytes apart"}},
      {Header({Tensor("a", "F32", "2", "4,12")}), {"tensor \"a\"", "its data at 0", "at 4"}},
      {Header({two_words, Tensor("b", "F32", "1", "12,16")}),
       {"tensor \"b\"", "its data at 8", "at 12"}},
      {Header({two_words, Tensor("b", "F32", "2", "4,12")}),
       {"tensor \"b\"", "its data at 8", "at 4"}},
      {Header({two_words, Tensor("b", "F32", "2", "0,8")}),
       {"tensor \"b\"", "its data at 8", "at 0"}},
      // Names.
      {Header({Tensor(std::string(1025, 'n'), "F32", "2", "0,8")}), {"at most 1024 bytes"}},
  };
  for (const Case& c : cases) {
    const auto parsed = ParseSafetensorsHeader(c.json);
    const std::string shown = c.json.substr(0, 120);
    ASSERT_THAT(parsed, StatusIs(absl::StatusCode::kDataLoss)) << shown;
    for (const std::string& part : c.says) {
      EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(part)) << shown;
    }
  }
}

TEST(Safetensors, TooManyTensorsAreRefused) {
  std::string json = "{";
  for (size_t i = 0; i <= kSafetensorsTensorsMax + 1; ++i) {
    absl::StrAppend(&json, i > 0 ? "," : "",
                    Tensor(absl::StrCat(i), "F32", "1", absl::StrCat(4 * i, ",", 4 * i + 4)));
  }
  EXPECT_THAT(ParseSafetensorsHeader(json + "}"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("at most 65536 tensors")));
}

class SafetensorsFileTest : public ::testing::Test {
 protected:
  absl::Status Open(absl::string_view bytes) {
    WriteBytes(path_, bytes);
    return SafetensorsFile::Open(path_).status();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "x.safetensors";
  const std::string json_ = Header({Tensor("a", "F32", "2", "0,8")});
};

TEST_F(SafetensorsFileTest, ReadsAnyRange) {
  WriteBytes(path_, FileOf(json_, "abcdefgh"));
  auto file = SafetensorsFile::Open(path_);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->path(), path_);
  ASSERT_EQ(file->header().entries.size(), 1u);
  std::string bytes(5, '\0');
  EXPECT_THAT(file->Read(2, std::span(bytes.data(), bytes.size())), IsOk());
  EXPECT_EQ(bytes, "cdefg");
  const SafetensorsFile moved = *std::move(file);
  EXPECT_THAT(moved.Read(0, std::span(bytes.data(), bytes.size())), IsOk());
  EXPECT_EQ(bytes, "abcde");
}

TEST_F(SafetensorsFileTest, SizesThatLie) {
  constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(Open(""), StatusIs(kDataLoss, HasSubstr("at least 8 bytes")));
  EXPECT_THAT(Open("1234567"), StatusIs(kDataLoss, AllOf(HasSubstr(path_), HasSubstr("found 7"))));
  EXPECT_THAT(Open(LittleEndian(0)), StatusIs(kDataLoss, HasSubstr("expected JSON")));
  // Lengths beyond the file, beyond the limit, and beyond what addition holds.
  for (const uint64_t length : {uint64_t{json_.size() + 9}, kSafetensorsHeaderBytesMax + 1,
                                uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    EXPECT_THAT(Open(LittleEndian(length) + json_ + "abcdefgh"),
                StatusIs(kDataLoss, HasSubstr(absl::StrCat("found a length of ", length))));
  }
  // A header that is cut, or that reaches into the data.
  EXPECT_THAT(Open(LittleEndian(json_.size() - 1) + json_ + "abcdefgh"),
              StatusIs(kDataLoss, HasSubstr("expected JSON")));
  EXPECT_THAT(Open(LittleEndian(json_.size() + 1) + json_ + "abcdefgh"),
              StatusIs(kDataLoss, HasSubstr("expected JSON")));
  // Data that is cut, or that has bytes after it.
  EXPECT_THAT(Open(FileOf(json_, "abcdefg")), StatusIs(kDataLoss, HasSubstr("as its header says")));
  EXPECT_THAT(Open(FileOf(json_, "abcdefghi")),
              StatusIs(kDataLoss, HasSubstr("as its header says")));
  EXPECT_THAT(Open(FileOf(json_, "")), StatusIs(kDataLoss, HasSubstr("as its header says")));
  EXPECT_THAT(Open(FileOf("{}", "x")), StatusIs(kDataLoss, HasSubstr("as its header says")));
  EXPECT_THAT(Open(FileOf("{}", "")), IsOk());
}

TEST_F(SafetensorsFileTest, OnlyRegularFiles) {
  EXPECT_THAT(SafetensorsFile::Open(folder_ / "none"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(SafetensorsFile::Open(folder_.path()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("regular file")));
}

TEST_F(SafetensorsFileTest, AFileThatShrinksWhileItIsOpen) {
  WriteBytes(path_, FileOf(json_, "abcdefgh"));
  const auto file = SafetensorsFile::Open(path_);
  ASSERT_THAT(file, IsOk());
  std::filesystem::resize_file(path_, 8 + json_.size() + 3);
  std::string bytes(8, '\0');
  EXPECT_THAT(file->Read(0, std::span(bytes.data(), bytes.size())),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends at")));
}

}  // namespace
}  // namespace lockstep::engine
