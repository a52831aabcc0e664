// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding of one piece. The rule, which is that of tiktoken's rank files: a piece that
// is a token is that token; else of all neighbours whose bytes together are a token, those merge
// that make the token of lowest rank, the leftmost of equals, until none do.
//
// Hence merges as pairs: within a stretch of bytes that no merge has crossed, the rule takes the
// same steps as if the stretch stood alone, and passes through one state of two parts at most. So
// each token is made by one pair of tokens or by none, and looking up pairs of ids is the same as
// looking up bytes.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_MERGER_H_
#define LOCKSTEP_ENGINE_TOKENIZER_MERGER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::engine {

// Immutable once made; from any thread.
class Merger {
 public:
  // `tokens` by rank as in a valid Vocabulary; they must outlive this.
  explicit Merger(const std::vector<std::string>& tokens);

  // The pair of ids that makes token `id`, or {-1, -1}: bytes have none, and so do tokens that only
  // a whole piece can be.
  std::pair<int32_t, int32_t> PairOf(int32_t id) const { return pairs_[id]; }
  // The token that a pair makes, or -1.
  int32_t Merge(int32_t left, int32_t right) const;

  // The ids of a piece of n bytes by merging only, without the look-up of the whole. Writes them to
  // out, which has room for n, and returns how many there are. Takes O(n log n) time and, above
  // kShortBytes, 16 n bytes of memory.
  size_t Encode(absl::string_view piece, int32_t* out) const {
    return piece.size() <= kShortBytes ? EncodeShort(piece, out) : EncodeLong(piece, out);
  }
  static constexpr size_t kShortBytes = 64;

 private:
  size_t EncodeShort(absl::string_view piece, int32_t* out) const;
  size_t EncodeLong(absl::string_view piece, int32_t* out) const;
  void Insert(int32_t left, int32_t right, int32_t id);
  static uint64_t KeyOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 20 | static_cast<uint64_t>(right);
  }
  size_t SlotOf(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }

  const std::vector<std::string>& tokens_;
  std::vector<std::pair<int32_t, int32_t>> pairs_;
  int32_t byte_ids_[256];
  // The tokens of two bytes, by those bytes, first byte high.
  std::vector<int32_t> byte_pairs_;
  // All pairs: key << 20 | id, at the key's slot or the next free one. kEmpty is no entry: no pair
  // is that large.
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  std::vector<uint64_t> slots_;
  int shift_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_MERGER_H_
