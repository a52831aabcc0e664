// SPDX-License-Identifier: Apache-2.0
//
// Merkle trees after RFC 6962 and RFC 9162: hashing, the two trees, and the proofs they give. The
// verifiers stand apart, in merkle_verify.cc. See merkle.h.

#include "base/merkle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/logging.h"

namespace lockstep {
namespace {

constexpr uint8_t kLeafPrefix[] = {0x00};
constexpr uint8_t kNodePrefix = 0x01;

// Where a tree of `size` >= 2 leaves divides: the largest power of two below `size`.
uint64_t Split(uint64_t size) { return std::bit_floor(size - 1); }

// One root over complete subtrees from left to right, each larger than the next.
Digest FoldPeaks(std::span<const Digest> peaks) {
  if (peaks.empty()) return Sha256(ByteSpan());
  Digest root = peaks.back();
  for (size_t i = peaks.size() - 1; i > 0; --i) root = MerkleNodeHash(peaks[i - 1], root);
  return root;
}

}  // namespace

Digest MerkleLeafHash(ByteSpan data) { return Sha256({kLeafPrefix, data}); }

Digest MerkleLeafHash(std::initializer_list<ByteSpan> parts) {
  static thread_local Sha256Hasher hasher;
  hasher.Update(kLeafPrefix);
  for (const ByteSpan part : parts) hasher.Update(part);
  return hasher.Finish();
}

std::array<Digest, 2> MerkleLeafHashPair(const SplitMessage& a, const SplitMessage& b) {
  std::array<uint8_t, 63> heads[2];
  const auto prefixed = [](const SplitMessage& leaf, std::array<uint8_t, 63>& head) {
    LOCKSTEP_CHECK(leaf.head.size() < head.size());
    head[0] = kLeafPrefix[0];
    std::copy(leaf.head.begin(), leaf.head.end(), head.begin() + 1);
    return SplitMessage{.head = ByteSpan(head.data(), leaf.head.size() + 1), .body = leaf.body};
  };
  return Sha256Pair(prefixed(a, heads[0]), prefixed(b, heads[1]));
}

Digest MerkleNodeHash(const Digest& left, const Digest& right) {
  // In one piece: as three parts it takes a sixth longer.
  std::array<uint8_t, 1 + 2 * sizeof(Digest)> node;
  node[0] = kNodePrefix;
  const auto end = std::copy(left.bytes.begin(), left.bytes.end(), node.begin() + 1);
  std::copy(right.bytes.begin(), right.bytes.end(), end);
  return Sha256(node);
}

Digest MerkleRoot(std::span<const Digest> leaf_hashes) {
  MerkleFrontier frontier;
  for (const Digest& leaf_hash : leaf_hashes) frontier.Append(leaf_hash);
  return frontier.Root();
}

// Subtrees of a power of two leaves, the last perhaps smaller, are the leaves of the tree above
// them.
Digest MerkleRoot(std::span<const Digest> leaf_hashes, ThreadPool& pool) {
  constexpr size_t kSubtree = 64;
  std::vector<Digest> roots((leaf_hashes.size() + kSubtree - 1) / kSubtree);
  pool.ParallelFor(static_cast<int64_t>(roots.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t start = static_cast<size_t>(i) * kSubtree;
      const size_t size = std::min(kSubtree, leaf_hashes.size() - start);
      roots[i] = MerkleRoot(leaf_hashes.subspan(start, size));
    }
  });
  return MerkleRoot(roots);
}

std::vector<Digest> MerkleLeafHashes(ByteSpan data, size_t leaf_bytes, ThreadPool& pool) {
  LOCKSTEP_CHECK(leaf_bytes > 0);
  const size_t leaves = data.size() / leaf_bytes + (data.size() % leaf_bytes != 0);
  std::vector<Digest> hashes(leaves);
  // Enough leaves in a piece for its start to cost nothing beside their hashing.
  const auto grain = static_cast<int64_t>(std::max<size_t>(1, 2048 / leaf_bytes));
  const auto leaf = [&](int64_t i) {
    const size_t start = static_cast<size_t>(i) * leaf_bytes;
    return SplitMessage{.head = {},
                        .body = data.subspan(start, std::min(leaf_bytes, data.size() - start))};
  };
  // Pairs of neighbours, and perhaps one over.
  const auto pairs = static_cast<int64_t>(leaves / 2);
  pool.ParallelFor(pairs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 2 * begin; i < 2 * end; i += 2) {
      const std::array<Digest, 2> both = MerkleLeafHashPair(leaf(i), leaf(i + 1));
      hashes[i] = both[0];
      hashes[i + 1] = both[1];
    }
  });
  if (leaves % 2 != 0) hashes.back() = MerkleLeafHash(leaf(2 * pairs).body);
  return hashes;
}

absl::StatusOr<MerkleFrontier> MerkleFrontier::FromPeaks(uint64_t size, std::vector<Digest> peaks) {
  if (peaks.size() != static_cast<size_t>(std::popcount(size))) {
    return absl::InvalidArgumentError(absl::StrCat("the frontier of a Merkle tree of ", size,
                                                   " leaves has ", std::popcount(size),
                                                   " peaks, found ", peaks.size()));
  }
  MerkleFrontier frontier;
  frontier.size_ = size;
  frontier.peaks_ = std::move(peaks);
  return frontier;
}

// Like adding 1 to a binary number: a carry merges two subtrees of one size.
void MerkleFrontier::Append(const Digest& leaf_hash) {
  Digest carry = leaf_hash;
  for (uint64_t bits = size_; bits & 1; bits >>= 1) {
    carry = MerkleNodeHash(peaks_.back(), carry);
    peaks_.pop_back();
  }
  peaks_.push_back(carry);
  ++size_;
}

Digest MerkleFrontier::Root() const { return FoldPeaks(peaks_); }

void MerkleTree::Append(const Digest& leaf_hash) {
  Digest hash = leaf_hash;
  for (size_t k = 0;; ++k) {
    if (k == levels_.size()) levels_.emplace_back();
    std::vector<Digest>& level = levels_[k];
    level.push_back(hash);
    if (level.size() % 2 != 0) return;
    hash = MerkleNodeHash(level[level.size() - 2], level[level.size() - 1]);
  }
}

absl::StatusOr<Digest> MerkleTree::Root(uint64_t size) const {
  if (size > this->size()) {
    return absl::OutOfRangeError(
        absl::StrCat("root over ", size, " leaves of a Merkle tree of ", this->size()));
  }
  return RangeHash(0, size);
}

absl::StatusOr<Digest> MerkleTree::SubtreeRoot(int level, uint64_t index) const {
  if (level >= 0 && static_cast<size_t>(level) < levels_.size() && index < levels_[level].size()) {
    return levels_[level][index];
  }
  return absl::OutOfRangeError(absl::StrCat("subtree ", index, " of level ", level,
                                            " is not whole in a Merkle tree of ", size(),
                                            " leaves"));
}

// PATH(m, D[n]) of RFC 6962 section 2.1.1, from the root down.
absl::StatusOr<std::vector<Digest>> MerkleTree::InclusionProof(uint64_t index,
                                                               uint64_t size) const {
  if (size > this->size() || index >= size) {
    return absl::OutOfRangeError(absl::StrCat("inclusion proof of leaf ", index, " in ", size,
                                              " leaves of a Merkle tree of ", this->size()));
  }
  std::vector<Digest> proof;
  uint64_t begin = 0;
  uint64_t end = size;
  while (end - begin > 1) {
    const uint64_t middle = begin + Split(end - begin);
    if (index < middle) {
      proof.push_back(RangeHash(middle, end));
      end = middle;
    } else {
      proof.push_back(RangeHash(begin, middle));
      begin = middle;
    }
  }
  std::reverse(proof.begin(), proof.end());
  return proof;
}

// PROOF(m, D[n]) and SUBPROOF(m, D[n], b) of RFC 6962 section 2.1.2, from the root down. A subtree
// on the left edge of the old tree is that tree, whose root the verifier has.
absl::StatusOr<std::vector<Digest>> MerkleTree::ConsistencyProof(uint64_t old_size,
                                                                 uint64_t new_size) const {
  if (new_size > size() || old_size > new_size) {
    return absl::OutOfRangeError(absl::StrCat("consistency proof from ", old_size, " to ", new_size,
                                              " leaves of a Merkle tree of ", size()));
  }
  std::vector<Digest> proof;
  if (old_size == 0) return proof;
  uint64_t begin = 0;
  uint64_t end = new_size;
  while (end != old_size) {
    const uint64_t middle = begin + Split(end - begin);
    if (old_size <= middle) {
      proof.push_back(RangeHash(middle, end));
      end = middle;
    } else {
      proof.push_back(RangeHash(begin, middle));
      begin = middle;
    }
  }
  if (begin != 0) proof.push_back(RangeHash(begin, end));
  std::reverse(proof.begin(), proof.end());
  return proof;
}

// The root over leaves [begin, end). `begin` is a multiple of the largest power of two that fits,
// as it is for every subtree of an RFC 6962 tree, so complete subtrees cover the range.
Digest MerkleTree::RangeHash(uint64_t begin, uint64_t end) const {
  std::vector<Digest> peaks;
  while (begin < end) {
    const uint64_t leaves = std::bit_floor(end - begin);
    peaks.push_back(levels_[std::countr_zero(leaves)][begin / leaves]);
    begin += leaves;
  }
  return FoldPeaks(peaks);
}

}  // namespace lockstep
