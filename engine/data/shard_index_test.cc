// SPDX-License-Identifier: Apache-2.0
//
// Shard indices and names: the bytes that docs/shards.md gives, and everything else refused.
#include "engine/data/shard_index.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

void Patch(std::string& bytes, size_t offset, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes[offset + i] = static_cast<char>(value >> (8 * i));
}

TEST(ShardIndex, BytesAreThoseOfTheDocument) {
  EXPECT_EQ(HexEncode(AsBytes(EncodeShardIndex({0, 4, 5, 300}))),
            "4c53494e44455831"                    // LSINDEX1
            "0300000000000000"                    // documents
            "2c01000000000000"                    // tokens
            "0000000004000000050000002c010000");  // beginnings, and the end
  EXPECT_EQ(HexEncode(AsBytes(EncodeShardNames({"a", "", "bc"}))),
            "4c534e414d455331"                  // LSNAMES1
            "0300000000000000"                  // documents
            "0300000000000000"                  // bytes of names
            "00000000010000000100000003000000"  // beginnings, and the end
            "616263");
  EXPECT_EQ(EncodeShardIndex({0, 4, 5, 300}).size(), ShardIndexBytes(3));
  EXPECT_EQ(EncodeShardNames({"a", "", "bc"}).size(), ShardNamesBytes(3, 3));
}

TEST(ShardIndex, WhatIsWrittenIsRead) {
  const std::vector<uint32_t> begins = {0, 1, 2, 1000, 1u << 28};
  const auto index = ParseShardIndex(AsBytes(EncodeShardIndex(begins)), 4, 1u << 28);
  ASSERT_THAT(index, IsOk());
  EXPECT_EQ(index->begins, begins);
  EXPECT_EQ(index->documents(), 4);
  const std::vector<std::string> names = {"web.jsonl#1", "", std::string("\0\xff", 2), "x"};
  EXPECT_THAT(ParseShardNames(AsBytes(EncodeShardNames(names)), 4), IsOkAndHolds(names));
}

TEST(ShardIndex, EveryTruncationAndExtensionIsRefused) {
  const std::string index = EncodeShardIndex({0, 4, 5, 300});
  const std::string names = EncodeShardNames({"a", "", "bc"});
  for (size_t size = 0; size < index.size(); ++size) {
    EXPECT_THAT(ParseShardIndex(AsBytes(index).first(size), 3, 300),
                StatusIs(kDataLoss, HasSubstr(absl::StrCat("expected 40, found ", size))));
  }
  for (size_t size = 0; size < names.size(); ++size) {
    EXPECT_THAT(ParseShardNames(AsBytes(names).first(size), 3), StatusIs(kDataLoss));
  }
  EXPECT_THAT(ParseShardIndex(AsBytes(index + '\0'), 3, 300), StatusIs(kDataLoss));
  EXPECT_THAT(ParseShardNames(AsBytes(names + '\0'), 3), StatusIs(kDataLoss));
}

// Every byte that is another, since each has one meaning.
TEST(ShardIndex, EveryChangedByteIsRefusedOrAnotherIndex) {
  const std::string good = EncodeShardIndex({0, 4, 5, 300});
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] ^= static_cast<char>(1 << bit);
      const auto index = ParseShardIndex(AsBytes(bad), 3, 300);
      if (index.ok()) {
        ASSERT_EQ(EncodeShardIndex(index->begins), bad);
      } else {
        ASSERT_THAT(index, StatusIs(kDataLoss));
      }
    }
  }
}

TEST(ShardIndex, HostileFieldsAreRefusedWithTheirOffset) {
  const std::string good = EncodeShardIndex({0, 4, 5, 300});
  const auto refused = [&](size_t offset, uint64_t value, int width, const char* message) {
    std::string bad = good;
    Patch(bad, offset, value, width);
    EXPECT_THAT(ParseShardIndex(AsBytes(bad), 3, 300), StatusIs(kDataLoss, HasSubstr(message)));
  };
  refused(0, 0, 8, "offset 0: expected LSINDEX1");
  refused(8, UINT64_MAX, 8, "offset 8: documents: expected 3, found 18446744073709551615");
  refused(16, UINT64_MAX, 8, "offset 16: tokens: expected 300, found 18446744073709551615");
  refused(24, 1, 4, "offset 24: first beginning: expected 0, found 1");
  refused(28, 0, 4, "offset 28: document 1: expected a beginning above 0, found 0");
  refused(28, 5, 4, "offset 32: document 2: expected a beginning above 5, found 5");
  refused(28, UINT32_MAX, 4, "offset 32: document 2");
  refused(36, 5, 4, "offset 36: document 3: expected a beginning above 5, found 5");
  refused(36, UINT32_MAX, 4, "offset 36: end of the last document: expected 300");
}

TEST(ShardNames, HostileFieldsAreRefusedWithTheirOffset) {
  const std::string good = EncodeShardNames({"a", "", "bc"});
  const auto refused = [&](size_t offset, uint64_t value, int width, const char* message) {
    std::string bad = good;
    Patch(bad, offset, value, width);
    EXPECT_THAT(ParseShardNames(AsBytes(bad), 3), StatusIs(kDataLoss, HasSubstr(message)));
  };
  refused(0, 0, 8, "offset 0: expected LSNAMES1");
  refused(8, UINT64_MAX, 8, "offset 8: documents: expected 3");
  refused(16, UINT64_MAX, 8, "offset 16: bytes of names: expected 3");
  refused(24, 1, 4, "offset 24: expected 0");
  refused(28, UINT32_MAX, 4, "offset 28: expected 0 to 3, found 4294967295");
  refused(32, 0, 4, "offset 32: expected 1 to 3, found 0");
  refused(36, 2, 4, "offset 36: end of the last name: expected 3, found 2");
}

}  // namespace
}  // namespace lockstep::engine
