// SPDX-License-Identifier: Apache-2.0
//
// The Merkle tree over a set of tensors. Every tensor is cut into chunks of kChunkElements elements
// in canonical order, however it is spread over machines; a chunk is a leaf that is bound to its
// tensor and its place:
//
//   leaf = SHA-256(0x00 || tensor id, u32 || chunk index, u64 || the elements, little-endian)
//
// and the tree is RFC 6962's over all leaves, tensors ascending (base/merkle.h).
#ifndef LOCKSTEP_AUDIT_STATE_TREE_H_
#define LOCKSTEP_AUDIT_STATE_TREE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr int64_t kChunkElements = 65536;

inline int64_t ChunksOf(int64_t elements) {
  return (elements + kChunkElements - 1) / kChunkElements;
}

// Names and sizes of a model's tensors in canonical order; a tensor's id is its place.
struct TensorInfo {
  std::string name;            // "layers.3.mlp.down", as in checkpoints
  std::vector<int64_t> shape;  // row-major
  int64_t elements = 0;
  int64_t first_chunk = 0;  // in the tree
};
class TensorTable {
 public:
  void Add(std::string name, std::vector<int64_t> shape);
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  int64_t chunks() const { return chunks_; }
  int64_t elements() const { return elements_; }

  struct Place {
    int64_t tensor;
    int64_t chunk;  // within the tensor
  };
  Place PlaceOfLeaf(int64_t leaf) const;

 private:
  std::vector<TensorInfo> tensors_;
  int64_t chunks_ = 0;
  int64_t elements_ = 0;
};

// `bytes`: the chunk's elements as they are stored.
Digest ChunkLeafHash(int64_t tensor, int64_t chunk, ByteSpan bytes);
// Of chunks `chunk` and `chunk` + 1, which takes little longer if they are of one size.
std::array<Digest, 2> ChunkLeafHashPair(int64_t tensor, int64_t chunk, ByteSpan first,
                                        ByteSpan second);

// The first leaf in which two lists of equal length differ; nullopt if they are equal.
std::optional<int64_t> FirstDifference(const std::vector<Digest>& a, const std::vector<Digest>& b);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_STATE_TREE_H_
