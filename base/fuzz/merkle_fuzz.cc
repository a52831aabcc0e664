// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: Merkle proofs. Random proofs must be refused without a fault, and a true proof that
// the input alters must be refused unless the alteration changed nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/coding.h"
#include "base/logging.h"
#include "base/merkle.h"

namespace lockstep {
namespace {

constexpr uint64_t kLeaves = 33;

Digest Leaf(uint64_t i) {
  const uint8_t data[] = {static_cast<uint8_t>(i)};
  return MerkleLeafHash(data);
}

const MerkleTree& Tree() {
  static const MerkleTree* const tree = [] {
    auto* t = new MerkleTree;
    for (uint64_t i = 0; i < kLeaves; ++i) t->Append(Leaf(i));
    return t;
  }();
  return *tree;
}

// What is left of the input, as hashes.
std::vector<Digest> RemainingHashes(ByteReader& reader) {
  std::vector<Digest> hashes;
  while (reader.remaining() >= sizeof(Digest)) {
    hashes.push_back(Digest::FromBytes(*reader.ReadFixed("hash", sizeof(Digest))).value());
  }
  return hashes;
}

// XORs the input over the proof, which may make it shorter or longer. False if nothing changed.
bool Alter(ByteReader& reader, std::vector<Digest>& proof) {
  const std::vector<Digest> original = proof;
  proof.resize((proof.size() + reader.ReadU8("growth").value_or(0)) % 70);
  for (Digest& hash : proof) {
    for (uint8_t& byte : hash.bytes) byte ^= reader.ReadU8("mask").value_or(0);
  }
  return proof != original;
}

void CheckAltered(ByteReader& reader) {
  const uint64_t size = 1 + reader.ReadU8("size").value_or(0) % kLeaves;
  const uint64_t index = reader.ReadU8("index").value_or(0) % size;
  const Digest root = Tree().Root(size).value();

  std::vector<Digest> proof = Tree().InclusionProof(index, size).value();
  const bool altered = Alter(reader, proof);
  LOCKSTEP_CHECK(VerifyMerkleInclusion(Leaf(index), index, size, proof, root).ok() == !altered);

  const uint64_t old = index + 1;
  proof = Tree().ConsistencyProof(old, size).value();
  const bool altered_too = Alter(reader, proof);
  LOCKSTEP_CHECK(VerifyMerkleConsistency(old, size, proof, Tree().Root(old).value(), root).ok() ==
                 !altered_too);
}

void CheckRandom(ByteReader& reader) {
  const uint64_t a = reader.ReadU64("a").value_or(0);
  const uint64_t b = reader.ReadU64("b").value_or(0);
  const std::vector<Digest> proof = RemainingHashes(reader);
  const Digest root = MerkleRoot({});
  LOCKSTEP_CHECK(!VerifyMerkleInclusion(Leaf(0), a, b, proof, root).ok());
  const bool trivial = proof.empty() && a <= b && (a == 0 || a == b);
  LOCKSTEP_CHECK(VerifyMerkleConsistency(a, b, proof, root, root).ok() == trivial);
  const bool is_frontier = MerkleFrontier::FromPeaks(a, proof).ok();
  LOCKSTEP_CHECK(!is_frontier || proof.size() <= 64);
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  ByteReader reader(ByteSpan(data, size));
  if (reader.ReadU8("kind").value_or(0) % 2 == 0) {
    CheckAltered(reader);
  } else {
    CheckRandom(reader);
  }
  return 0;
}
