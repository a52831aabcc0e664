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
using Place = std::array<uint8_t, 12>;
Place PlaceOf(int64_t tensor, int64_t chunk) {
  Place place;
  for (int i = 0; i < 4; ++i) place[i] = static_cast<uint8_t>(tensor >> (8 * i));
  for (int i = 0; i < 8; ++i) place[4 + i] = static_cast<uint8_t>(chunk >> (8 * i));
  return place;
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
  return MerkleLeafHash({ByteSpan(PlaceOf(tensor, chunk)), bytes});
}

std::array<Digest, 2> ChunkLeafHashPair(int64_t tensor, int64_t chunk, ByteSpan first,
                                        ByteSpan second) {
  const Place place = PlaceOf(tensor, chunk);
  const Place next = PlaceOf(tensor, chunk + 1);
  return MerkleLeafHashPair({.head = place, .body = first}, {.head = next, .body = second});
}

std::optional<int64_t> FirstDifference(const std::vector<Digest>& a, const std::vector<Digest>& b) {
  const auto [at, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at == a.end()) return std::nullopt;
  return at - a.begin();
}

}  // namespace lockstep::audit
