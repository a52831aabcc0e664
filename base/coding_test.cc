// SPDX-License-Identifier: Apache-2.0
//
// The writer's bytes, the reader's values, and every way an input can be too short or too long.

#include "base/coding.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// One of each field.
std::string Sample() {
  ByteWriter writer;
  writer.WriteU8(0xa1);
  writer.WriteU16(0xb1b2);
  writer.WriteU32(0xc1c2c3c4);
  writer.WriteU64(0xd1d2d3d4d5d6d7d8);
  writer.WriteI64(-2);
  writer.WriteF32(1.0f);
  writer.WriteF64(-2.0);
  writer.WriteFixed(AsBytes("fixed"));
  writer.WriteLengthPrefixed(AsBytes("prefixed"));
  return writer.Take();
}

TEST(Coding, WritesLittleEndian) {
  constexpr char kExpected[] =
      "\xa1"
      "\xb2\xb1"
      "\xc4\xc3\xc2\xc1"
      "\xd8\xd7\xd6\xd5\xd4\xd3\xd2\xd1"
      "\xfe\xff\xff\xff\xff\xff\xff\xff"
      "\x00\x00\x80\x3f"
      "\x00\x00\x00\x00\x00\x00\x00\xc0"
      "fixed"
      "\x08\x00\x00\x00prefixed";
  static_assert(sizeof(kExpected) == 52 + 1);
  EXPECT_EQ(Sample(), std::string(kExpected, 52));
}

TEST(Coding, ReadsWhatWasWritten) {
  const std::string bytes = Sample();
  ByteReader reader(AsBytes(bytes));
  EXPECT_THAT(reader.ReadU8("a"), IsOkAndHolds(0xa1));
  EXPECT_THAT(reader.ReadU16("b"), IsOkAndHolds(0xb1b2));
  EXPECT_THAT(reader.ReadU32("c"), IsOkAndHolds(0xc1c2c3c4));
  EXPECT_THAT(reader.ReadU64("d"), IsOkAndHolds(0xd1d2d3d4d5d6d7d8));
  EXPECT_EQ(reader.offset(), 15);
  EXPECT_EQ(reader.remaining(), 37);
  EXPECT_THAT(reader.ExpectEnd(), StatusIs(kInvalid));
}

TEST(Coding, ReadsEveryKindToTheEnd) {
  const std::string bytes = Sample();
  ByteReader reader(AsBytes(bytes));
  ASSERT_THAT(reader.ReadFixed("head", 15), IsOk());
  EXPECT_THAT(reader.ReadI64("e"), IsOkAndHolds(-2));
  EXPECT_THAT(reader.ReadF32("f"), IsOkAndHolds(1.0f));
  EXPECT_THAT(reader.ReadF64("g"), IsOkAndHolds(-2.0));
  const absl::StatusOr<ByteSpan> fixed = reader.ReadFixed("h", 5);
  ASSERT_THAT(fixed, IsOk());
  EXPECT_EQ(AsChars(*fixed), "fixed");
  const absl::StatusOr<ByteSpan> prefixed = reader.ReadLengthPrefixed("i", 8);
  ASSERT_THAT(prefixed, IsOk());
  EXPECT_EQ(AsChars(*prefixed), "prefixed");
  EXPECT_THAT(reader.ExpectEnd(), IsOk());
  EXPECT_EQ(reader.remaining(), 0);
  EXPECT_THAT(reader.ReadFixed("nothing", 0), IsOk());
  EXPECT_THAT(reader.ReadU8("past the end"), StatusIs(kInvalid));
}

TEST(Coding, FloatsKeepEveryBit) {
  for (uint32_t bits : {0x00000000u, 0x80000000u, 0x00000001u, 0x7f800000u, 0x7f800001u,
                        0xffc12345u, 0x7fffffffu}) {
    ByteWriter writer;
    writer.WriteU32(bits);
    writer.WriteU64(uint64_t{bits} << 32 | 0x9abcdef1);
    const std::string bytes = writer.Take();
    ByteReader reader(AsBytes(bytes));
    const absl::StatusOr<float> f32 = reader.ReadF32("f32");
    const absl::StatusOr<double> f64 = reader.ReadF64("f64");
    ASSERT_THAT(f64, IsOk());
    EXPECT_EQ(std::bit_cast<uint32_t>(*f32), bits);
    writer.WriteF32(*f32);
    writer.WriteF64(*f64);
    EXPECT_EQ(writer.bytes(), bytes);
  }
}

TEST(Coding, ExtremesSurvive) {
  for (int64_t value : {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0},
                        std::numeric_limits<int64_t>::max()}) {
    ByteWriter writer;
    writer.WriteI64(value);
    EXPECT_THAT(ByteReader(AsBytes(writer.bytes())).ReadI64("value"), IsOkAndHolds(value));
  }
}

TEST(Coding, ErrorNamesFieldOffsetAndSizes) {
  ByteReader reader(AsBytes("abcde"));
  ASSERT_THAT(reader.ReadU32("magic"), IsOk());
  EXPECT_THAT(reader.ReadU64("step"),
              StatusIs(kInvalid, "step at offset 4 wants 8 bytes, but only 1 are left"));
}

TEST(Coding, AfterAnErrorReadsKeepFailingAndNothingMoves) {
  ByteReader reader(AsBytes("abcde"));
  const absl::Status first = reader.ReadU64("step").status();
  EXPECT_THAT(first, StatusIs(kInvalid, HasSubstr("step")));
  EXPECT_EQ(reader.ReadU8("byte").status(), first);
  EXPECT_EQ(reader.ReadFixed("none", 0).status(), first);
  EXPECT_EQ(reader.ReadLengthPrefixed("text", 9).status(), first);
  EXPECT_EQ(reader.ExpectEnd(), first);
  EXPECT_EQ(reader.status(), first);
  EXPECT_EQ(reader.offset(), 0);
  EXPECT_EQ(reader.remaining(), 5);
}

TEST(Coding, ExpectEndSaysHowMuchIsLeft) {
  ByteReader reader(AsBytes("abcde"));
  ASSERT_THAT(reader.ReadU16("head"), IsOk());
  EXPECT_THAT(reader.ExpectEnd(),
              StatusIs(kInvalid, "expected the end at offset 2, found 3 more bytes"));
  EXPECT_THAT(reader.ReadU8("more"), StatusIs(kInvalid));
}

TEST(Coding, LengthPrefixIsBounded) {
  const std::string huge(
      "\xff\xff\xff\xff"
      "abc",
      7);
  ByteReader capped(AsBytes(huge));
  EXPECT_THAT(
      capped.ReadLengthPrefixed("name", 100),
      StatusIs(kInvalid, "name at offset 0 claims 4294967295 bytes, more than the 100 allowed"));
  ByteReader cut(AsBytes(huge));
  EXPECT_THAT(cut.ReadLengthPrefixed("name", std::numeric_limits<size_t>::max()),
              StatusIs(kInvalid, "name at offset 4 wants 4294967295 bytes, but only 3 are left"));
  EXPECT_EQ(cut.offset(), 0);
  ByteReader no_prefix(AsBytes("abc"));
  EXPECT_THAT(no_prefix.ReadLengthPrefixed("name", 100), StatusIs(kInvalid));
  ByteReader empty(AsBytes(absl::string_view("\0\0\0\0", 4)));
  const absl::StatusOr<ByteSpan> none = empty.ReadLengthPrefixed("name", 0);
  ASSERT_THAT(none, IsOk());
  EXPECT_TRUE(none->empty());
}

TEST(Coding, HugeSizesDoNotOverflow) {
  ByteReader reader(AsBytes("abcde"));
  ASSERT_THAT(reader.ReadU8("head"), IsOk());
  EXPECT_THAT(reader.ReadFixed("tail", std::numeric_limits<size_t>::max()), StatusIs(kInvalid));
}

// Reads the sample's fields in order; the count that succeeded.
int ReadAll(ByteReader& reader) {
  const bool ok[] = {reader.ReadU8("").ok(),
                     reader.ReadU16("").ok(),
                     reader.ReadU32("").ok(),
                     reader.ReadU64("").ok(),
                     reader.ReadI64("").ok(),
                     reader.ReadF32("").ok(),
                     reader.ReadF64("").ok(),
                     reader.ReadFixed("", 5).ok(),
                     reader.ReadLengthPrefixed("", 100).ok(),
                     reader.ExpectEnd().ok()};
  int count = 0;
  while (count < 10 && ok[count]) ++count;
  for (int i = count; i < 10; ++i) EXPECT_FALSE(ok[i]);
  return count;
}

TEST(Coding, EveryTruncationFailsAtItsField) {
  const std::string bytes = Sample();
  const std::vector<size_t> ends = {1, 3, 7, 15, 23, 27, 35, 40, 52};
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader reader(AsBytes(bytes).first(size));
    const int count = ReadAll(reader);
    EXPECT_EQ(count, std::upper_bound(ends.begin(), ends.end(), size) - ends.begin());
    EXPECT_EQ(reader.offset(), count == 0 ? 0 : ends[count - 1]);
  }
  ByteReader whole(AsBytes(bytes));
  EXPECT_EQ(ReadAll(whole), 10);
  const std::string longer = bytes + "x";
  ByteReader extended(AsBytes(longer));
  EXPECT_EQ(ReadAll(extended), 9);
}

TEST(Coding, TakeEmptiesTheWriter) {
  ByteWriter writer;
  writer.WriteU8(7);
  EXPECT_EQ(writer.Take(), "\x07");
  EXPECT_EQ(writer.bytes(), "");
  writer.WriteU8(8);
  EXPECT_EQ(writer.bytes(), "\x08");
}

}  // namespace
}  // namespace lockstep
