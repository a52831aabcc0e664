// SPDX-License-Identifier: Apache-2.0
//
// Paths and widths as c2sp.org/tlog-tiles has them, tiles against the tree's definition, and proofs
// (c2sp.org/tlog-proof).
#include "audit/log/log_tiles.h"

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "audit/log/log_proof.h"
#include "audit/testing/digests.h"
#include "audit/testing/small_log.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(LogTiles, PathsOfTheSpecification) {
  const std::pair<LogTile, const char*> cases[] = {
      {{.level = 0, .index = 1234067}, "tile/0/x001/x234/067"},
      {{.level = 0, .index = 0}, "tile/0/000"},
      {{.level = 1, .index = 999, .width = 1}, "tile/1/999.p/1"},
      {{.level = 7, .index = 1000, .width = 255}, "tile/7/x001/000.p/255"},
      {{.level = std::nullopt, .index = 273, .width = 112}, "tile/entries/273.p/112"},
      {{.level = std::nullopt, .index = (uint64_t{1} << 56) - 1},
       "tile/entries/x072/x057/x594/x037/x927/935"}};
  for (const auto& [tile, path] : cases) {
    EXPECT_EQ(PathOf(tile), path);
    EXPECT_THAT(ParseTilePath(path), IsOkAndHolds(tile));
  }
}

TEST(LogTiles, RefusesOtherPaths) {
  for (const char* path : {"",
                           "/",
                           "tile",
                           "tile/0",
                           "tile/0/",
                           "tile/0/0",
                           "tile/0/00",
                           "tile/0/0000",
                           "tile/0/x000",
                           "tile/0/x000/000",
                           "tile/0/001/000",
                           "tile/0/x001",
                           "tile/0/x001/x000",
                           "tile/0/1000",
                           "tile/00/000",
                           "tile/8/000",
                           "tile/-1/000",
                           "tile/data/000",
                           "tile/0/000.p/0",
                           "tile/0/000.p/256",
                           "tile/0/000.p/01",
                           "tile/0/000.p/",
                           "tile/0/000.p",
                           "tile/0/000/p/1",
                           "tile/0/000.p/1/",
                           "tile/0/000.p/1.p/1",
                           "/tile/0/000",
                           "tile/0/../0/000",
                           "tile//0/000",
                           "tile/0/ 00",
                           "tile/0/+00",
                           "tile/0/-00",
                           "tile/entries/00a",
                           "checkpoint",
                           "tile/0/x072/x057/x594/x037/x927/936",
                           "tile/0/x999/x999/x999/x999/x999/x999/999"}) {
    EXPECT_THAT(ParseTilePath(path), StatusIs(kInvalid)) << path;
  }
}

// "A tree of size 70,000 will be represented by 273 full level 0 tiles, one partial level 0 tile of
// width 112, one full level 1 tile, one partial level 1 tile of width 17, and one partial level 2
// tile of width 1." And: 256 by a full level 0 tile and a partial level 1 tile of width 1.
TEST(LogTiles, TilesOfTheSpecification) {
  std::map<std::string, int> count;
  for (const LogTile& tile : NewTiles(0, 70000)) {
    const std::string level = tile.level ? absl::StrCat(*tile.level) : "entries";
    ++count[absl::StrCat(level, " ", tile.width)];
  }
  EXPECT_THAT(count, ElementsAre(std::pair("0 112", 1), std::pair("0 256", 273),
                                 std::pair("1 17", 1), std::pair("1 256", 1), std::pair("2 1", 1),
                                 std::pair("entries 112", 1), std::pair("entries 256", 273)));
  EXPECT_THAT(NewTiles(0, 256), ElementsAre(LogTile{.level = std::nullopt, .index = 0},
                                            LogTile{.level = 0, .index = 0},
                                            LogTile{.level = 1, .index = 0, .width = 1}));
  EXPECT_THAT(NewTiles(0, 0), ElementsAre());
  EXPECT_THAT(NewTiles(5, 5), ElementsAre());
}

TEST(LogTiles, GrowingAddsWhatIsMissing) {
  std::set<std::string> written;
  uint64_t old_size = 0;
  for (const uint64_t size : {1, 2, 255, 256, 257, 700, 65535, 65536, 65537, 70000}) {
    for (const LogTile& tile : NewTiles(old_size, size)) {
      EXPECT_TRUE(written.insert(PathOf(tile)).second) << PathOf(tile);
    }
    // Everything that a log of this size has from the start is there now.
    for (const LogTile& tile : NewTiles(0, size)) {
      EXPECT_TRUE(written.contains(PathOf(tile))) << size << " " << PathOf(tile);
    }
    old_size = size;
  }
  EXPECT_EQ(NewTiles(UINT64_MAX - 1, UINT64_MAX).size(), 2u);
}

TEST(LogTiles, HashesAreTheTreesOwn) {
  MerkleTree tree;
  std::vector<Digest> leaves;
  for (int i = 0; i < 66000; ++i) {
    leaves.push_back(Sha256(AsBytes(absl::StrCat(i))));
    tree.Append(leaves.back());
  }
  const auto hash_at = [](const std::string& bytes, size_t i) {
    return Digest::FromBytes(AsBytes(bytes).subspan(i * 32, 32)).value();
  };
  const auto zero = HashTileBytes(tree, {.level = 0, .index = 3});
  ASSERT_THAT(zero, IsOk());
  ASSERT_EQ(zero->size(), 8192u);
  EXPECT_EQ(hash_at(*zero, 9), leaves[3 * 256 + 9]);
  const auto one = HashTileBytes(tree, {.level = 1, .index = 0});
  ASSERT_THAT(one, IsOk());
  for (const size_t i : {0, 100, 255}) {
    EXPECT_EQ(hash_at(*one, i), MerkleRoot(std::span(leaves).subspan(i * 256, 256)));
  }
  const auto two = HashTileBytes(tree, {.level = 2, .index = 0, .width = 1});
  ASSERT_THAT(two, IsOk());
  EXPECT_EQ(hash_at(*two, 0), MerkleRoot(std::span(leaves).first(65536)));
  EXPECT_THAT(HashTileBytes(tree, {.level = 2, .index = 0, .width = 2}),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(HashTileBytes(tree, {.level = 7, .index = 0, .width = 1}),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(EntryBundle, EntriesWithTheirLengths) {
  const std::string entries[] = {"a", "", std::string(65535, 'b')};
  const auto bytes = EncodeEntryBundle(entries);
  ASSERT_THAT(bytes, IsOk());
  EXPECT_EQ(bytes->substr(0, 7), std::string("\0\x01"
                                             "a\0\0\xff\xff",
                                             7));
  EXPECT_THAT(ParseEntryBundle(*bytes, 3), IsOkAndHolds(ElementsAre("a", "", entries[2])));
  EXPECT_THAT(ParseEntryBundle(*bytes, 2), StatusIs(kDataLoss, HasSubstr("nothing after")));
  EXPECT_THAT(ParseEntryBundle(*bytes, 4), StatusIs(kDataLoss, HasSubstr("cut short")));
  for (const size_t size : {0u, 1u, 2u, 4u, 6u, 100u}) {
    EXPECT_THAT(ParseEntryBundle(bytes->substr(0, size), 3), StatusIs(kDataLoss));
  }
  const std::string long_entries[] = {std::string(65536, 'b')};
  EXPECT_THAT(EncodeEntryBundle(long_entries), StatusIs(absl::StatusCode::kResourceExhausted));
}

// The example of c2sp.org/tlog-proof, whose base64 there is made up, in form.
TEST(LogProof, HasTheFormOfTheSpecification) {
  const LogProof proof = {.extra = "age",
                          .index = 73894,
                          .hashes = {Filled(1), Filled(2)},
                          .checkpoint = "example.com/fancylog\n"};
  const std::string text =
      "c2sp.org/tlog-proof@v1\nextra YWdl\nindex 73894\n"
      "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\nAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n"
      "\nexample.com/fancylog\n";
  EXPECT_EQ(EncodeLogProof(proof), text);
  EXPECT_THAT(ParseLogProof(text), IsOkAndHolds(proof));
  LogProof plain = proof;
  plain.extra.reset();
  plain.hashes.clear();
  plain.index = 0;
  EXPECT_EQ(EncodeLogProof(plain), "c2sp.org/tlog-proof@v1\nindex 0\n\nexample.com/fancylog\n");
  EXPECT_THAT(ParseLogProof(EncodeLogProof(plain)), IsOkAndHolds(plain));
  const std::pair<const char*, const char*> changes[] = {{"@v1", "@v2"},
                                                         {"extra YWdl", "extra YWd"},
                                                         {"extra ", "extra"},
                                                         {"index 7", "index 07"},
                                                         {"index 7", "index -7"},
                                                         {"index 7", "index  7"},
                                                         {"index 73894\n", ""},
                                                         {"AQE=", "AQE"},
                                                         {"AQEBAQEB", ""},
                                                         {"\n\nexample", "\nexample"},
                                                         {"73894", "18446744073709551616"}};
  for (const auto& [from, to] : changes) {
    EXPECT_THAT(ParseLogProof(absl::StrReplaceAll(text, {{from, to}})), StatusIs(kDataLoss)) << to;
  }
  EXPECT_THAT(ParseLogProof(""), StatusIs(kDataLoss));
  plain.hashes.assign(65, Filled(1));
  EXPECT_THAT(ParseLogProof(EncodeLogProof(plain)), StatusIs(kDataLoss));
}

TEST(LogProof, ShowsThatAnEntryIsInTheLog) {
  SmallLog log;
  log.AddOperator(0, 3);
  const uint64_t size = log.entries().size();
  for (uint64_t i = 0; i < size; ++i) {
    LogProof proof = {.extra = std::nullopt,
                      .index = i,
                      .hashes = log.tree().InclusionProof(i, size).value(),
                      .checkpoint = log.Checkpoint()};
    const Digest leaf = MerkleLeafHash(AsBytes(log.entries()[i]));
    const auto read = ParseLogProof(EncodeLogProof(proof));
    ASSERT_THAT(read, IsOkAndHolds(proof));
    const auto head = VerifyLogProof(*read, leaf, log.log_key());
    ASSERT_THAT(head, IsOk());
    EXPECT_EQ(head->size, size);
    EXPECT_THAT(VerifyLogProof(*read, Filled(1), log.log_key()), StatusIs(kInvalid));
    proof.index = (i + 1) % size;
    EXPECT_THAT(VerifyLogProof(proof, leaf, log.log_key()), StatusIs(kInvalid));
    proof.index = i;
    proof.checkpoint = log.CheckpointAt(size - 1);
    EXPECT_THAT(VerifyLogProof(proof, leaf, log.log_key()), StatusIs(kInvalid));
    NoteKey other = log.log_key();
    other.key = TestPublicKey(77);
    EXPECT_THAT(VerifyLogProof(*read, leaf, other), StatusIs(absl::StatusCode::kPermissionDenied));
  }
}

}  // namespace
}  // namespace lockstep::audit
