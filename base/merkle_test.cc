// SPDX-License-Identifier: Apache-2.0
//
// Merkle trees against published vectors, against the recursive definitions of RFC 6962 written out
// naively, and against every single-step forgery of every proof of a small tree.
//
// The vectors are those of the Certificate Transparency reference code (merkle_tree_test.cc of
// google/certificate-transparency, also in transparency-dev/merkle, testonly/): eight leaves, the
// roots over the first 1 to 8, and proofs.

#include "base/merkle.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;
using Hashes = std::vector<Digest>;

constexpr const char* kLeaves[] = {"",
                                   "00",
                                   "10",
                                   "2021",
                                   "3031",
                                   "40414243",
                                   "5051525354555657",
                                   "606162636465666768696a6b6c6d6e6f"};
constexpr const char* kRoots[] = {
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};

Digest FromHex(const char* text) { return Digest::FromHex(text).value(); }

Hashes PublishedLeafHashes() {
  Hashes hashes;
  for (const char* leaf : kLeaves) {
    hashes.push_back(MerkleLeafHash(AsBytes(HexDecode(leaf).value())));
  }
  return hashes;
}

Hashes LeafHashes(int size) {
  Hashes hashes;
  for (int i = 0; i < size; ++i) hashes.push_back(MerkleLeafHash(AsBytes(std::to_string(i))));
  return hashes;
}

MerkleTree TreeOf(const Hashes& leaf_hashes) {
  MerkleTree tree;
  for (const Digest& leaf_hash : leaf_hashes) tree.Append(leaf_hash);
  return tree;
}

Hashes Slice(const Hashes& hashes, size_t begin, size_t end) {
  return Hashes(hashes.begin() + begin, hashes.begin() + end);
}

// RFC 6962 section 2.1, 2.1.1 and 2.1.2, word for word.
size_t NaiveSplit(size_t n) {
  size_t k = 1;
  while (2 * k < n) k *= 2;
  return k;
}

Digest NaiveRoot(const Hashes& d) {
  if (d.empty()) return Sha256(ByteSpan());
  if (d.size() == 1) return d[0];
  const size_t k = NaiveSplit(d.size());
  return MerkleNodeHash(NaiveRoot(Slice(d, 0, k)), NaiveRoot(Slice(d, k, d.size())));
}

Hashes Joined(Hashes hashes, const Digest& last) {
  hashes.push_back(last);
  return hashes;
}

Hashes NaivePath(size_t m, const Hashes& d) {
  if (d.size() == 1) return {};
  const size_t k = NaiveSplit(d.size());
  const Hashes left = Slice(d, 0, k);
  const Hashes right = Slice(d, k, d.size());
  return m < k ? Joined(NaivePath(m, left), NaiveRoot(right))
               : Joined(NaivePath(m - k, right), NaiveRoot(left));
}

Hashes NaiveSubproof(size_t m, const Hashes& d, bool known) {
  if (m == d.size()) return known ? Hashes{} : Hashes{NaiveRoot(d)};
  const size_t k = NaiveSplit(d.size());
  const Hashes left = Slice(d, 0, k);
  const Hashes right = Slice(d, k, d.size());
  return m <= k ? Joined(NaiveSubproof(m, left, known), NaiveRoot(right))
                : Joined(NaiveSubproof(m - k, right, false), NaiveRoot(left));
}

// The sides of a path's siblings from the leaf up, and of a consistency proof with H for its head:
// all that a verifier's computation takes from the index and the sizes.
std::string InclusionShape(size_t m, size_t n) {
  if (n == 1) return "";
  const size_t k = NaiveSplit(n);
  return m < k ? InclusionShape(m, k) + "R" : InclusionShape(m - k, n - k) + "L";
}

std::string ConsistencyShape(size_t m, size_t n, bool known) {
  if (m == n) return known ? "" : "H";
  const size_t k = NaiveSplit(n);
  return m <= k ? ConsistencyShape(m, k, known) + "R" : ConsistencyShape(m - k, n - k, false) + "L";
}

// Every proof one step from `proof`: a bit of a hash flipped, two hashes swapped, one left out, one
// doubled, one added at either end.
std::vector<Hashes> Forgeries(const Hashes& proof) {
  std::vector<Hashes> forgeries;
  for (size_t i = 0; i < proof.size(); ++i) {
    for (int bit : {0, 100, 255}) {
      forgeries.push_back(proof);
      forgeries.back()[i].bytes[bit / 8] ^= 1 << bit % 8;
    }
    forgeries.push_back(proof);
    forgeries.back().erase(forgeries.back().begin() + i);
    forgeries.push_back(proof);
    forgeries.back().insert(forgeries.back().begin() + i, proof[i]);
    if (i > 0 && proof[i] != proof[i - 1]) {
      forgeries.push_back(proof);
      std::swap(forgeries.back()[i], forgeries.back()[i - 1]);
    }
  }
  forgeries.push_back(Joined(proof, Digest()));
  forgeries.push_back(proof);
  forgeries.back().insert(forgeries.back().begin(), Digest());
  return forgeries;
}

TEST(Merkle, PublishedRoots) {
  EXPECT_EQ(MerkleRoot({}).ToHex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const Hashes leaf_hashes = PublishedLeafHashes();
  const MerkleTree tree = TreeOf(leaf_hashes);
  MerkleFrontier frontier;
  for (int size = 1; size <= 8; ++size) {
    frontier.Append(leaf_hashes[size - 1]);
    EXPECT_EQ(frontier.Root().ToHex(), kRoots[size - 1]);
    EXPECT_EQ(MerkleRoot(Slice(leaf_hashes, 0, size)).ToHex(), kRoots[size - 1]);
    EXPECT_THAT(tree.Root(size), IsOkAndHolds(FromHex(kRoots[size - 1])));
  }
}

TEST(Merkle, PublishedProofs) {
  const MerkleTree tree = TreeOf(PublishedLeafHashes());
  const auto hashes = [](const std::vector<const char*>& texts) {
    Hashes result;
    for (const char* text : texts) result.push_back(FromHex(text));
    return result;
  };
  const Hashes first = hashes({"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                               "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                               "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"});
  EXPECT_THAT(tree.InclusionProof(0, 8), IsOkAndHolds(first));
  EXPECT_THAT(tree.ConsistencyProof(1, 8), IsOkAndHolds(first));
  EXPECT_THAT(
      tree.InclusionProof(5, 8),
      IsOkAndHolds(hashes({"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                           "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                           "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"})));
  EXPECT_THAT(
      tree.ConsistencyProof(6, 8),
      IsOkAndHolds(hashes({"0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                           "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                           "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"})));
}

TEST(Merkle, LeafHashOfPartsIsThatOfTheWhole) {
  EXPECT_EQ(MerkleLeafHash({AsBytes("ab"), AsBytes(""), AsBytes("c")}),
            MerkleLeafHash(AsBytes("abc")));
  EXPECT_EQ(MerkleLeafHash(AsBytes("abc")), Sha256(AsBytes(absl::string_view("\0abc", 4))));
}

TEST(Merkle, RootsAgreeWithTheDefinition) {
  const Hashes all = LeafHashes(70);
  const MerkleTree tree = TreeOf(all);
  MerkleFrontier frontier;
  for (size_t size = 0; size <= all.size(); ++size) {
    const Hashes leaf_hashes = Slice(all, 0, size);
    const Digest expected = NaiveRoot(leaf_hashes);
    EXPECT_EQ(MerkleRoot(leaf_hashes), expected);
    EXPECT_EQ(frontier.Root(), expected);
    EXPECT_EQ(frontier.size(), size);
    EXPECT_THAT(tree.Root(size), IsOkAndHolds(expected));
    if (size < all.size()) frontier.Append(all[size]);
  }
}

TEST(Merkle, RootsInParallel) {
  const Hashes all = LeafHashes(400);
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (size_t size = 0; size <= all.size(); ++size) {
      const Hashes leaf_hashes = Slice(all, 0, size);
      ASSERT_EQ(MerkleRoot(leaf_hashes, pool), MerkleRoot(leaf_hashes)) << size;
    }
  }
}

TEST(Merkle, ProofsAgreeWithTheDefinitionAndVerify) {
  const Hashes all = LeafHashes(34);
  const MerkleTree tree = TreeOf(all);
  for (uint64_t size = 1; size <= all.size(); ++size) {
    const Hashes leaf_hashes = Slice(all, 0, size);
    const Digest root = NaiveRoot(leaf_hashes);
    for (uint64_t i = 0; i < size; ++i) {
      const Hashes path = NaivePath(i, leaf_hashes);
      EXPECT_THAT(tree.InclusionProof(i, size), IsOkAndHolds(path));
      EXPECT_THAT(VerifyMerkleInclusion(all[i], i, size, path, root), IsOk());
    }
    for (uint64_t old = 1; old <= size; ++old) {
      const Hashes proof = NaiveSubproof(old, leaf_hashes, true);
      EXPECT_THAT(tree.ConsistencyProof(old, size), IsOkAndHolds(proof));
      EXPECT_THAT(VerifyMerkleConsistency(old, size, proof, NaiveRoot(Slice(all, 0, old)), root),
                  IsOk());
    }
    EXPECT_THAT(tree.ConsistencyProof(0, size), IsOkAndHolds(IsEmpty()));
    EXPECT_THAT(VerifyMerkleConsistency(0, size, {}, MerkleRoot({}), root), IsOk());
  }
}

TEST(Merkle, SubtreesAreTheRootsOverTheirLeaves) {
  const Hashes leaves = LeafHashes(23);
  const MerkleTree tree = TreeOf(leaves);
  for (int level = 0; level < 6; ++level) {
    const uint64_t width = uint64_t{1} << level;
    for (uint64_t i = 0; i < 25; ++i) {
      if ((i + 1) * width > leaves.size()) {
        EXPECT_THAT(tree.SubtreeRoot(level, i), StatusIs(kOutOfRange));
      } else {
        EXPECT_THAT(tree.SubtreeRoot(level, i),
                    IsOkAndHolds(MerkleRoot(std::span(leaves).subspan(i * width, width))));
      }
    }
  }
  EXPECT_THAT(tree.SubtreeRoot(-1, 0), StatusIs(kOutOfRange));
  EXPECT_THAT(tree.SubtreeRoot(64, 0), StatusIs(kOutOfRange));
}

TEST(Merkle, ForgedInclusionIsRefused) {
  const Hashes all = LeafHashes(18);
  const MerkleTree tree = TreeOf(all);
  for (uint64_t size = 1; size <= all.size(); ++size) {
    const Digest root = tree.Root(size).value();
    for (uint64_t i = 0; i < size; ++i) {
      const Hashes proof = tree.InclusionProof(i, size).value();
      for (const Hashes& forged : Forgeries(proof)) {
        ASSERT_THAT(VerifyMerkleInclusion(all[i], i, size, forged, root), StatusIs(kInvalid));
      }
      for (uint64_t j = 0; j < size + 2; ++j) {
        if (j == i) continue;
        ASSERT_THAT(VerifyMerkleInclusion(all[i], j, size, proof, root), StatusIs(kInvalid));
        if (j >= size) continue;
        ASSERT_THAT(VerifyMerkleInclusion(all[j], i, size, proof, root), StatusIs(kInvalid));
      }
      ASSERT_THAT(VerifyMerkleInclusion(all[i], i, size, proof, Digest()), StatusIs(kInvalid));
      ASSERT_THAT(VerifyMerkleInclusion(Digest(), i, size, proof, root), StatusIs(kInvalid));
    }
  }
}

TEST(Merkle, ForgedConsistencyIsRefused) {
  const Hashes all = LeafHashes(18);
  const MerkleTree tree = TreeOf(all);
  for (uint64_t size = 1; size <= all.size(); ++size) {
    const Digest root = tree.Root(size).value();
    for (uint64_t old = 0; old <= size; ++old) {
      const Digest old_root = tree.Root(old).value();
      const Hashes proof = tree.ConsistencyProof(old, size).value();
      for (const Hashes& forged : Forgeries(proof)) {
        ASSERT_THAT(VerifyMerkleConsistency(old, size, forged, old_root, root), StatusIs(kInvalid));
      }
      ASSERT_THAT(VerifyMerkleConsistency(old, size, proof, Digest(), root), StatusIs(kInvalid));
      // Of the empty tree there is nothing to prove, so any new root is consistent with it.
      if (old == 0) continue;
      ASSERT_THAT(VerifyMerkleConsistency(old, size, proof, old_root, Digest()),
                  StatusIs(kInvalid));
    }
  }
}

TEST(Merkle, AWrongSizePassesOnlyIfItAsksForTheSameComputation) {
  const Hashes all = LeafHashes(18);
  const MerkleTree tree = TreeOf(all);
  for (uint64_t size = 1; size <= all.size(); ++size) {
    const Digest root = tree.Root(size).value();
    for (uint64_t i = 0; i < size; ++i) {
      const Hashes inclusion = tree.InclusionProof(i, size).value();
      const Hashes consistency = tree.ConsistencyProof(i + 1, size).value();
      const Digest old_root = tree.Root(i + 1).value();
      for (uint64_t other = i + 1; other <= 40; ++other) {
        ASSERT_EQ(VerifyMerkleInclusion(all[i], i, other, inclusion, root).ok(),
                  InclusionShape(i, size) == InclusionShape(i, other));
        ASSERT_EQ(VerifyMerkleConsistency(i + 1, other, consistency, old_root, root).ok(),
                  ConsistencyShape(i + 1, size, true) == ConsistencyShape(i + 1, other, true))
            << i + 1 << " " << size << " " << other;
      }
      for (uint64_t other = 1; other <= size; ++other) {
        ASSERT_EQ(VerifyMerkleConsistency(other, size, consistency, old_root, root).ok(),
                  ConsistencyShape(i + 1, size, true) == ConsistencyShape(other, size, true))
            << i + 1 << " " << size << " " << other;
      }
    }
  }
}

TEST(Merkle, ErrorsSayWhatIsWrong) {
  const Hashes all = LeafHashes(8);
  const MerkleTree tree = TreeOf(all);
  const Digest root = tree.Root(8).value();
  const Hashes proof = tree.InclusionProof(3, 8).value();
  EXPECT_THAT(VerifyMerkleInclusion(all[3], 8, 8, proof, root),
              StatusIs(kInvalid, "inclusion of leaf 8 in a Merkle tree of 8: no such leaf"));
  EXPECT_THAT(VerifyMerkleInclusion(all[3], 0, 0, proof, root), StatusIs(kInvalid));
  EXPECT_THAT(VerifyMerkleInclusion(all[3], 3, 8, {}, root),
              StatusIs(kInvalid, HasSubstr("expected a proof of 3 hashes, found 0")));
  EXPECT_THAT(VerifyMerkleInclusion(all[2], 3, 8, proof, root),
              StatusIs(kInvalid, HasSubstr("expected " + root.ToHex())));
  EXPECT_THAT(VerifyMerkleConsistency(9, 8, {}, root, root),
              StatusIs(kInvalid, HasSubstr("the old tree is the larger")));
}

TEST(Merkle, LargestSizes) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const auto proof_length = [](const absl::Status& status) {
    return std::string(status.message());
  };
  EXPECT_THAT(proof_length(VerifyMerkleInclusion(Digest(), 0, kMax, {}, Digest())),
              HasSubstr("expected a proof of 64 hashes"));
  EXPECT_THAT(proof_length(VerifyMerkleInclusion(Digest(), kMax - 1, kMax, {}, Digest())),
              HasSubstr("expected a proof of 63 hashes"));
  EXPECT_THAT(proof_length(VerifyMerkleConsistency(uint64_t{1} << 63, kMax, {}, {}, {})),
              HasSubstr("expected a proof of 1 hashes"));
  EXPECT_THAT(proof_length(VerifyMerkleConsistency(1, kMax, {}, {}, {})),
              HasSubstr("expected a proof of 64 hashes"));
  EXPECT_THAT(VerifyMerkleInclusion(Digest(), 5, kMax, Hashes(64), Digest()), StatusIs(kInvalid));
  EXPECT_THAT(VerifyMerkleConsistency(kMax - 1, kMax, Hashes(64), Digest(), Digest()),
              StatusIs(kInvalid));
}

TEST(Merkle, TreeRefusesWhatItDoesNotHave) {
  const MerkleTree empty;
  EXPECT_THAT(empty.Root(0), IsOkAndHolds(MerkleRoot({})));
  EXPECT_THAT(empty.ConsistencyProof(0, 0), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(empty.InclusionProof(0, 0), StatusIs(kOutOfRange));
  const MerkleTree tree = TreeOf(LeafHashes(5));
  EXPECT_THAT(tree.Root(6), StatusIs(kOutOfRange));
  EXPECT_THAT(tree.InclusionProof(5, 5), StatusIs(kOutOfRange));
  EXPECT_THAT(tree.InclusionProof(0, 6), StatusIs(kOutOfRange));
  EXPECT_THAT(tree.ConsistencyProof(1, 6), StatusIs(kOutOfRange));
  EXPECT_THAT(tree.ConsistencyProof(4, 3), StatusIs(kOutOfRange));
}

TEST(MerkleFrontier, GoesOnFromStoredPeaks) {
  const Hashes all = LeafHashes(40);
  for (size_t stop = 0; stop <= all.size(); ++stop) {
    MerkleFrontier first;
    for (size_t i = 0; i < stop; ++i) first.Append(all[i]);
    absl::StatusOr<MerkleFrontier> second = MerkleFrontier::FromPeaks(first.size(), first.peaks());
    ASSERT_THAT(second, IsOk());
    for (size_t i = stop; i < all.size(); ++i) second->Append(all[i]);
    EXPECT_EQ(second->Root(), NaiveRoot(all));
  }
  EXPECT_THAT(MerkleFrontier::FromPeaks(5, Hashes(3)),
              StatusIs(kInvalid, HasSubstr("has 2 peaks, found 3")));
}

TEST(Merkle, LeavesOfLargeDataInParallel) {
  std::string data;
  for (uint32_t i = 0; i < 300000; ++i) data += static_cast<char>(i * i >> 7);
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (size_t leaf_bytes : {size_t{37}, size_t{1000}, size_t{65536}, size_t{299999},
                              size_t{300000}, std::numeric_limits<size_t>::max()}) {
      Hashes expected;
      for (size_t at = 0; at < data.size();) {
        const size_t size = std::min(leaf_bytes, data.size() - at);
        expected.push_back(MerkleLeafHash(AsBytes(data).subspan(at, size)));
        at += size;
      }
      EXPECT_EQ(MerkleLeafHashes(AsBytes(data), leaf_bytes, pool), expected);
    }
    EXPECT_THAT(MerkleLeafHashes({}, 1000, pool), IsEmpty());
  }
}

}  // namespace
}  // namespace lockstep
