// SPDX-License-Identifier: Apache-2.0
//
// Merkle trees as in RFC 6962 section 2.1 and RFC 9162 section 2.1, over SHA-256:
//
//   leaf       SHA-256(0x00 || data)
//   node       SHA-256(0x01 || left || right)
//   no leaves  SHA-256("")
//   n leaves   node over the first k leaves and the rest, k the largest power of two below n
//
// Leaf and node differ in their first byte, so neither passes for the other. The tree commits to
// bytes and their order, and to nothing about what they mean: a caller binds that into the leaf.

#ifndef LOCKSTEP_BASE_MERKLE_H_
#define LOCKSTEP_BASE_MERKLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"
#include "base/sha256_pair.h"
#include "base/thread_pool.h"

namespace lockstep {

// The hash of a leaf; of several parts, as if they were one byte string.
Digest MerkleLeafHash(ByteSpan data);
Digest MerkleLeafHash(std::initializer_list<ByteSpan> parts);

// Of two leaves at once (base/sha256_pair.h): faster if their parts have the same lengths. head: 62
// bytes at most (checked).
std::array<Digest, 2> MerkleLeafHashPair(const SplitMessage& a, const SplitMessage& b);
Digest MerkleNodeHash(const Digest& left, const Digest& right);

// The root over leaves with these hashes; with a pool, on its threads, and the same root.
Digest MerkleRoot(std::span<const Digest> leaf_hashes);
Digest MerkleRoot(std::span<const Digest> leaf_hashes, ThreadPool& pool);

// Cuts `data` into leaves of `leaf_bytes` (checked: not 0; the last may be shorter; empty data has
// no leaves) and hashes them on the pool's threads. The result depends on the data and
// `leaf_bytes`.
std::vector<Digest> MerkleLeafHashes(ByteSpan data, size_t leaf_bytes, ThreadPool& pool);

// The tree without its leaves, for appending: one hash for each complete subtree on its right edge,
// at most 64. The compact range of the literature.
class MerkleFrontier {
 public:
  MerkleFrontier() = default;

  // A frontier that was stored as its size and peaks. InvalidArgument unless there is a peak for
  // each bit of `size`. The hashes are believed: compare Root() with a root that is known.
  static absl::StatusOr<MerkleFrontier> FromPeaks(uint64_t size, std::vector<Digest> peaks);

  void Append(const Digest& leaf_hash);
  Digest Root() const;

  // Leaves appended so far.
  uint64_t size() const { return size_; }
  // Roots of the complete subtrees from left to right, hence from large to small.
  const std::vector<Digest>& peaks() const { return peaks_; }

 private:
  uint64_t size_ = 0;
  std::vector<Digest> peaks_;
};

// The tree in memory, about two hashes a leaf: any root and proof it ever had, in logarithmic time.
// Sizes and indices beyond the tree are OutOfRange.
class MerkleTree {
 public:
  void Append(const Digest& leaf_hash);

  uint64_t size() const { return levels_.empty() ? 0 : levels_[0].size(); }

  // The root when the tree had `size` leaves.
  absl::StatusOr<Digest> Root(uint64_t size) const;

  // The root over leaves [index * 2^level, (index + 1) * 2^level), all of them there.
  absl::StatusOr<Digest> SubtreeRoot(int level, uint64_t index) const;

  // That leaf `index` is in the tree of `size` leaves: the siblings from the leaf up.
  absl::StatusOr<std::vector<Digest>> InclusionProof(uint64_t index, uint64_t size) const;

  // That the tree of `new_size` leaves begins with the tree of `old_size`, which may be equal to
  // it. Of a tree of no leaves there is nothing to prove, and the proof is empty.
  absl::StatusOr<std::vector<Digest>> ConsistencyProof(uint64_t old_size, uint64_t new_size) const;

 private:
  Digest RangeHash(uint64_t begin, uint64_t end) const;

  // levels_[k][i] is the hash of the complete subtree over leaves [i * 2^k, (i + 1) * 2^k).
  std::vector<std::vector<Digest>> levels_;
};

// Verifiers, for anyone who holds a root. Every argument may come from an adversary. OK if the
// proof shows the claim; otherwise InvalidArgument, which says what about it is wrong. A root alone
// does not fix the size of its tree (a leaf's path may be the same in trees of 7 and of 8): a
// holder of roots keeps each with its size, as a signed tree head does.
//
// The claim: `leaf_hash` is leaf `index` of the tree of `size` leaves with this root.
absl::Status VerifyMerkleInclusion(const Digest& leaf_hash, uint64_t index, uint64_t size,
                                   std::span<const Digest> proof, const Digest& root);

// The claim: the tree of `new_size` leaves with `new_root` begins with the tree of `old_size`
// leaves with `old_root`.
absl::Status VerifyMerkleConsistency(uint64_t old_size, uint64_t new_size,
                                     std::span<const Digest> proof, const Digest& old_root,
                                     const Digest& new_root);

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_MERKLE_H_
