// SPDX-License-Identifier: Apache-2.0
//
// Tables of tensors, and the leaves of their chunks.
#include "audit/state_tree.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/merkle.h"

namespace lockstep::audit {
namespace {

// What binds a leaf to its place.
std::string PlaceOf(int64_t tensor, int64_t chunk) {
  ByteWriter place;
  place.WriteU32(static_cast<uint32_t>(tensor));
  place.WriteU64(static_cast<uint64_t>(chunk));
  return place.Take();
}

}  // namespace

void TensorTable::Add(std::string name, std::vector<int64_t> shape) {
  TensorInfo info = {.name = std::move(name), .shape = std::move(shape)};
  info.elements = 1;
  for (const int64_t extent : info.shape) info.elements *= extent;
  info.first_chunk = chunks_;
  chunks_ += ChunksOf(info.elements);
  elements_ += info.elements;
  tensors_.push_back(std::move(info));
}

TensorTable::Place TensorTable::PlaceOfLeaf(int64_t leaf) const {
  const auto after =
      std::upper_bound(tensors_.begin(), tensors_.end(), leaf,
                       [](int64_t l, const TensorInfo& t) { return l < t.first_chunk; });
  const int64_t tensor = after - tensors_.begin() - 1;
  return {.tensor = tensor, .chunk = leaf - tensors_[tensor].first_chunk};
}

Digest ChunkLeafHash(int64_t tensor, int64_t chunk, ByteSpan bytes) {
  return MerkleLeafHash({AsBytes(PlaceOf(tensor, chunk)), bytes});
}

std::array<Digest, 2> ChunkLeafHashPair(int64_t tensor, int64_t chunk, ByteSpan first,
                                        ByteSpan second) {
  const std::string place = PlaceOf(tensor, chunk);
  const std::string next = PlaceOf(tensor, chunk + 1);
  return MerkleLeafHashPair({.head = AsBytes(place), .body = first},
                            {.head = AsBytes(next), .body = second});
}

std::optional<int64_t> FirstDifference(const std::vector<Digest>& a, const std::vector<Digest>& b) {
  const auto [at, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at == a.end()) return std::nullopt;
  return at - a.begin();
}

}  // namespace lockstep::audit
