// SPDX-License-Identifier: Apache-2.0
//
// Stream cursors as bytes.
#include "engine/data/cursor.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

StreamCursor Sample() {
  StreamCursor cursor;
  cursor.key = {Sha256(AsBytes("manifest")), 42, 4096};
  cursor.window = 3;
  cursor.draws = 7;
  cursor.sources = {{1, 2}, {0, 4}};
  cursor.carry = CarryOver{1, 2, 3, 4};
  return cursor;
}

TEST(Cursor, BytesAreThoseOfTheDocument) {
  EXPECT_EQ(HexEncode(AsBytes(EncodeCursor(Sample()))),
            absl::StrCat("4c53435552535231",                   // LSCURSR1
                         Sha256(AsBytes("manifest")).ToHex(),  //
                         "2a00000000000000"                    // seed
                         "0010000000000000"                    // sequence length
                         "0300000000000000"                    // window
                         "0700000000000000"                    // draws
                         "02000000"                            // sources
                         "0100000000000000"
                         "0200000000000000"  // epoch, documents
                         "0000000000000000"
                         "0400000000000000"  //
                         "01"                // a carry-over
                         "01000000"
                         "02000000"
                         "03000000"
                         "04000000"));  //
  EXPECT_EQ(CursorDigest(Sample()), Sha256(AsBytes(EncodeCursor(Sample()))));
}

TEST(Cursor, WhatIsWrittenIsRead) {
  StreamCursor cursor = Sample();
  EXPECT_THAT(DecodeCursor(AsBytes(EncodeCursor(cursor))), IsOkAndHolds(cursor));
  cursor.carry.reset();
  EXPECT_THAT(DecodeCursor(AsBytes(EncodeCursor(cursor))), IsOkAndHolds(cursor));
  cursor.sources.clear();
  EXPECT_THAT(DecodeCursor(AsBytes(EncodeCursor(cursor))), IsOkAndHolds(cursor));
}

TEST(Cursor, EveryTruncationAndExtensionIsRefused) {
  const std::string bytes = EncodeCursor(Sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DecodeCursor(AsBytes(bytes).first(size)), StatusIs(kDataLoss)) << size;
  }
  EXPECT_THAT(DecodeCursor(AsBytes(bytes + 'x')), StatusIs(kDataLoss));
}

TEST(Cursor, DecodesToWhatEncodesToTheSameBytes) {
  const std::string good = EncodeCursor(Sample());
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] ^= static_cast<char>(1 << bit);
      const auto cursor = DecodeCursor(AsBytes(bytes));
      if (cursor.ok()) {
        ASSERT_EQ(EncodeCursor(*cursor), bytes);
        ASSERT_NE(*cursor, Sample());
      } else {
        ASSERT_THAT(cursor, StatusIs(kDataLoss));
      }
    }
  }
}

TEST(Cursor, HostileFieldsAreRefusedWithTheirOffset) {
  const std::string good = EncodeCursor(Sample());
  const auto refused = [&](size_t offset, const std::string& value, const char* message) {
    std::string bad = good;
    bad.replace(offset, value.size(), value);
    EXPECT_THAT(DecodeCursor(AsBytes(bad)), StatusIs(kDataLoss, HasSubstr(message)));
  };
  refused(0, "LSCURSR2", "offset 0: expected LSCURSR1");
  refused(72, "\xff\xff\xff\xff", "offset 76: expected 4294967295 sources");
  refused(108, "\x02", "offset 108: carry-over flag: expected 0 or 1, found 2");
  refused(108, std::string(1, '\0'), "16");  // bytes after the end
}

}  // namespace
}  // namespace lockstep::engine
