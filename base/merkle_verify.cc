// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of Merkle proofs, which decide as RFC 9162 sections 2.1.3.2 and 2.1.4.2 do. They share
// nothing with the code that makes proofs but the node hash. See merkle.h.

#include <bit>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep {
namespace {

// The way from node `index` of a level, whose last node is `last`, up to the root. While the
// ancestor is not the last node of its level, it has a sibling on either side, told by a bit of
// `index`. Once it is the last (`inner` levels up), it may have one on its left only, or none.
class Path {
 public:
  Path(uint64_t index, uint64_t last) : index_(index), inner_(std::bit_width(index ^ last)) {}

  // Siblings on the way, which are the hashes that a proof must have.
  size_t length() const { return inner_ + (inner_ < 64 ? std::popcount(index_ >> inner_) : 0); }
  bool SiblingIsLeft(size_t i) const { return i >= inner_ || (index_ >> i & 1) != 0; }

 private:
  uint64_t index_;
  size_t inner_;
};

absl::Status CheckLength(absl::string_view claim, size_t found, size_t expected) {
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(claim, ": expected a proof of ", expected, " hashes, found ", found));
}

absl::Status CheckRoot(absl::string_view claim, absl::string_view which, const Digest& computed,
                       const Digest& root) {
  if (computed == root) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(claim, ": the proof leads to the ", which, " ",
                                                 computed.ToHex(), ", expected ", root.ToHex()));
}

}  // namespace

absl::Status VerifyMerkleInclusion(const Digest& leaf_hash, uint64_t index, uint64_t size,
                                   std::span<const Digest> proof, const Digest& root) {
  const std::string claim =
      absl::StrCat("inclusion of leaf ", index, " in a Merkle tree of ", size);
  if (index >= size) return absl::InvalidArgumentError(absl::StrCat(claim, ": no such leaf"));
  const Path path(index, size - 1);
  LOCKSTEP_RETURN_IF_ERROR(CheckLength(claim, proof.size(), path.length()));
  Digest hash = leaf_hash;
  for (size_t i = 0; i < proof.size(); ++i) {
    hash = path.SiblingIsLeft(i) ? MerkleNodeHash(proof[i], hash) : MerkleNodeHash(hash, proof[i]);
  }
  return CheckRoot(claim, "root", hash, root);
}

absl::Status VerifyMerkleConsistency(uint64_t old_size, uint64_t new_size,
                                     std::span<const Digest> proof, const Digest& old_root,
                                     const Digest& new_root) {
  const std::string claim =
      absl::StrCat("consistency of Merkle trees of ", old_size, " and ", new_size);
  if (old_size > new_size) {
    return absl::InvalidArgumentError(absl::StrCat(claim, ": the old tree is the larger"));
  }
  if (old_size == 0 || old_size == new_size) {
    LOCKSTEP_RETURN_IF_ERROR(CheckLength(claim, proof.size(), 0));
    return old_size == 0 ? CheckRoot(claim, "old root", MerkleRoot({}), old_root)
                         : CheckRoot(claim, "new root", old_root, new_root);
  }
  // The way up from the largest complete subtree that ends where the old tree does. That subtree
  // heads the proof, unless it is the whole old tree, whose root is at hand.
  const int height = std::countr_zero(old_size);
  const Path path((old_size - 1) >> height, (new_size - 1) >> height);
  const size_t head = std::has_single_bit(old_size) ? 0 : 1;
  LOCKSTEP_RETURN_IF_ERROR(CheckLength(claim, proof.size(), head + path.length()));
  Digest old_hash = head == 0 ? old_root : proof[0];
  Digest new_hash = old_hash;
  for (size_t i = 0; i < path.length(); ++i) {
    const Digest& sibling = proof[head + i];
    if (path.SiblingIsLeft(i)) {
      old_hash = MerkleNodeHash(sibling, old_hash);
      new_hash = MerkleNodeHash(sibling, new_hash);
    } else {
      new_hash = MerkleNodeHash(new_hash, sibling);
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckRoot(claim, "old root", old_hash, old_root));
  return CheckRoot(claim, "new root", new_hash, new_root);
}

}  // namespace lockstep
