// SPDX-License-Identifier: Apache-2.0
//
// Tables of tensors, places of chunks, and the bytes that a leaf hashes.
#include "audit/state_tree.h"

#include <string>
#include <vector>

#include "base/bytes.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

TensorTable Sample() {
  TensorTable table;
  table.Add("a", {3, 5});
  table.Add("b", {kChunkElements});
  table.Add("c", {2, kChunkElements, 1});
  table.Add("d", {kChunkElements + 1});
  return table;
}

TEST(TensorTable, CountsElementsAndChunks) {
  const TensorTable table = Sample();
  ASSERT_EQ(table.tensors().size(), 4u);
  const int64_t elements[] = {15, kChunkElements, 2 * kChunkElements, kChunkElements + 1};
  const int64_t first_chunks[] = {0, 1, 2, 4};
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(table.tensors()[t].elements, elements[t]) << t;
    EXPECT_EQ(table.tensors()[t].first_chunk, first_chunks[t]) << t;
  }
  EXPECT_EQ(table.chunks(), 6);
  EXPECT_EQ(table.elements(), 15 + 4 * kChunkElements + 1);
}

TEST(TensorTable, PlacesEachLeaf) {
  const TensorTable table = Sample();
  const std::pair<int64_t, int64_t> places[] = {{0, 0}, {1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}};
  for (int64_t leaf = 0; leaf < table.chunks(); ++leaf) {
    const TensorTable::Place place = table.PlaceOfLeaf(leaf);
    EXPECT_EQ(place.tensor, places[leaf].first) << leaf;
    EXPECT_EQ(place.chunk, places[leaf].second) << leaf;
  }
}

TEST(ChunksOf, RoundsUp) {
  EXPECT_EQ(ChunksOf(1), 1);
  EXPECT_EQ(ChunksOf(kChunkElements), 1);
  EXPECT_EQ(ChunksOf(kChunkElements + 1), 2);
}

// SHA-256 of 00, 01000000, 0200000000000000, 0102: computed with Python's hashlib.
TEST(ChunkLeafHash, BindsTensorAndPlace) {
  EXPECT_EQ(ChunkLeafHash(1, 2, AsBytes("\x01\x02")).ToHex(),
            "16271525fadfe9bd387087395c3af865e205345c9874eaf6f482176b98582f34");
  // What no sum of sizes tells apart: a tensor and its chunk swapped, bytes moved between the two.
  EXPECT_NE(ChunkLeafHash(1, 2, AsBytes("\x01\x02")), ChunkLeafHash(2, 1, AsBytes("\x01\x02")));
  EXPECT_EQ(ChunkLeafHash(0x01020304, 0x05060708090a0b0c, AsBytes("x")),
            Sha256({AsBytes(absl::string_view("\0\x04\x03\x02\x01", 5)),
                    AsBytes("\x0c\x0b\x0a\x09\x08\x07\x06\x05"), AsBytes("x")}));
}

TEST(FirstDifference, FindsTheFirst) {
  std::vector<Digest> a(5);
  std::vector<Digest> b = a;
  EXPECT_EQ(FirstDifference(a, b), std::nullopt);
  EXPECT_EQ(FirstDifference({}, {}), std::nullopt);
  b[3].bytes[31] = 1;
  EXPECT_EQ(FirstDifference(a, b), 3);
  b[1].bytes[0] = 1;
  EXPECT_EQ(FirstDifference(a, b), 1);
}

}  // namespace
}  // namespace lockstep::audit
