// SPDX-License-Identifier: Apache-2.0
//
// The ids of pieces met lately. Text repeats its words: nine pieces of ten are found here, at the
// price of one cache line. It changes how fast text is encoded and never to what.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_PIECE_CACHE_H_
#define LOCKSTEP_ENGINE_TOKENIZER_PIECE_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::engine {
namespace piece_cache_internal {

// 32 bytes of ones, then of zeros: from 32 - n, a mask of n bytes.
struct Mask {
  char bytes[64];
  constexpr Mask() : bytes{} {
    for (int i = 0; i < 32; ++i) bytes[i] = static_cast<char>(0xFF);
  }
};
inline constexpr Mask kMask;

}  // namespace piece_cache_internal

// For one thread at a time.
class PieceCache {
 public:
  // Longer pieces are not kept, nor are those of more ids.
  static constexpr size_t kBytesMax = 31;
  static constexpr size_t kIdsMax = 7;

  // The piece's bytes, zeros after them, and in the last byte its length.
  struct Key {
    uint64_t words[4];
    bool operator==(const Key& other) const {
      return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1]) |
              (words[2] ^ other.words[2]) | (words[3] ^ other.words[3])) == 0;
    }
  };
  struct alignas(64) Entry {
    Key key;
    int32_t ids[kIdsMax];
    uint32_t count;
  };

  PieceCache() : entries_(kEntries) {}

  // Of a piece of at most kBytesMax bytes, after which the text goes on up to `text_end`.
  static Key KeyOf(absl::string_view piece, const char* text_end) {
    Key key;
    if (text_end - piece.data() >= 32) {
      std::memcpy(&key, piece.data(), 32);
      Key mask;
      std::memcpy(&mask, piece_cache_internal::kMask.bytes + 32 - piece.size(), 32);
      for (int i = 0; i < 4; ++i) key.words[i] &= mask.words[i];
    } else {
      key = Key{};
      std::memcpy(&key, piece.data(), piece.size());
    }
    reinterpret_cast<char*>(&key)[31] = static_cast<char>(piece.size());
    return key;
  }

  // Where the key's entry is or may be put: at most one piece has it. An entry without a piece
  // equals no key.
  Entry& At(const Key& key) {
    uint64_t hash = key.words[0] * 0x9E3779B97F4A7C15u ^ key.words[1] * 0xC2B2AE3D27D4EB4Fu;
    hash ^= key.words[2] * 0x165667B19E3779F9u ^ key.words[3] * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    return entries_[static_cast<size_t>(hash * 0x9E3779B97F4A7C15u >> (64 - kBits))];
  }

 private:
  static constexpr int kBits = 13;  // 512 KiB, half of a usual second-level cache
  static constexpr size_t kEntries = size_t{1} << kBits;

  std::vector<Entry> entries_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_PIECE_CACHE_H_
