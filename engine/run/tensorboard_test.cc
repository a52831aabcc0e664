// SPDX-License-Identifier: Apache-2.0
//
// Event files: the checksum against the vectors of RFC 3720, an event byte by byte, and the frames.
// A reader that is independent of this code walks a run's file in tests/run_tools_test.py.
#include "engine/run/tensorboard.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

uint32_t Word(const std::string& bytes, size_t at) {
  uint32_t word = 0;
  for (int i = 3; i >= 0; --i) word = word << 8 | static_cast<uint8_t>(bytes[at + i]);
  return word;
}

// Records mask their checksums: rotated right by 15 bits, a constant added.
uint32_t Unmasked(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return rotated << 15 | rotated >> 17;
}

uint32_t Crc32cOf(const std::string& data) {
  const std::string record = TfRecord(data);
  return Unmasked(Word(record, record.size() - 4));
}

// RFC 3720, appendix B.4, and the check value of the polynomial's usual listing.
TEST(TfRecord, ChecksumsAreThoseOfRfc3720) {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  const std::string descending(ascending.rbegin(), ascending.rend());
  EXPECT_EQ(Crc32cOf(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32cOf(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32cOf(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32cOf(descending), 0x113fdb5cu);
  EXPECT_EQ(Crc32cOf(absl::HexStringToBytes("01c00000000000000000000000000000"
                                            "14000000000004000000001400000018"
                                            "28000000000000000200000000000000")),
            0xd9963a56u);
  EXPECT_EQ(Crc32cOf("123456789"), 0xe3069283u);
}

TEST(TfRecord, IsLengthChecksumDataChecksum) {
  const std::string record = TfRecord("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(Unmasked(Word(record, 8)), Crc32cOf(record.substr(0, 8)));
  EXPECT_EQ(record.substr(12, 3), "abc");
  EXPECT_EQ(TfRecord("").size(), 16u);
}

// Event { wall_time: 1.5, step: 300, summary { value { tag: "a/b", simple_value: -2 } } }, by hand
// from the wire format.
TEST(ScalarEvent, IsTheMessageByteForByte) {
  EXPECT_EQ(absl::BytesToHexString(ScalarEvent("a/b", 300, 1.5, -2.0f)),
            "09000000000000f83f"  // 1: fixed64, 1.5
            "10ac02"              // 2: varint, 300
            "2a0c"                // 5: 12 bytes
            "0a0a"                // 1: 10 bytes
            "0a03612f62"          // 1: "a/b"
            "15000000c0");        // 2: fixed32, -2
}

TEST(ScalarEvent, LongTagsAndLargeStepsTakeMoreBytes) {
  const std::string event = ScalarEvent(std::string(200, 't'), int64_t{1} << 40, 0, 0);
  EXPECT_EQ(absl::BytesToHexString(event.substr(9, 7)), "10808080808020");
  // 200 = c8 01; the value 203 + 5 = d0 01; the summary 208 + 3 = d3 01.
  EXPECT_EQ(absl::BytesToHexString(event.substr(16, 9)), "2ad3010ad0010ac801");
  EXPECT_EQ(event.size(), 9u + 7 + 3 + 211);
}

TEST(ScalarEvent, KeepsTheBitsOfWhatIsNotFinite) {
  const std::string event = ScalarEvent("x", 0, 0, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(absl::BytesToHexString(event.substr(event.size() - 5)), "15000080ff");
}

TEST(TensorBoardWriter, WritesAVersionThenWhatWasAdded) {
  const TemporaryFolder folder;
  auto writer = TensorBoardWriter::Create(folder.path(), 1'700'000'000.25);
  ASSERT_THAT(writer, IsOk());
  (*writer)->AddScalar("a", 1, 1'700'000'001, 0.5f);
  (*writer)->AddScalar("b", 2, 1'700'000'002, 0.25f);
  auto files = ReadAll(folder.path());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(files.begin()->first, ::testing::StartsWith("events.out.tfevents.1700000000."));
  EXPECT_EQ(files.begin()->second, "");
  ASSERT_THAT((*writer)->Flush(), IsOk());
  ASSERT_THAT((*writer)->Flush(), IsOk());  // nothing twice
  // Event { wall_time: 1700000000.25, step: 0, file_version: "brain.Event:2" }.
  const std::string head = absl::HexStringToBytes("0900001040fc54d941") +
                           absl::HexStringToBytes("1000") +
                           "\x1a\x0d"
                           "brain.Event:2";
  EXPECT_EQ(ReadAll(folder.path()).begin()->second,
            TfRecord(head) + TfRecord(ScalarEvent("a", 1, 1'700'000'001, 0.5f)) +
                TfRecord(ScalarEvent("b", 2, 1'700'000'002, 0.25f)));
}

TEST(TensorBoardWriter, AFolderThatIsNotThere) {
  EXPECT_THAT(TensorBoardWriter::Create("/nonexistent", 0),
              StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("/nonexistent/events")));
}

}  // namespace
}  // namespace lockstep::engine
