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
    const char* bytes = piece.data();
    char tail[32] = {};
    if (text_end - bytes < 32) {
      std::memcpy(tail, bytes, piece.size());
      bytes = tail;
    }
    // By words, and the length into its word: a byte stored alone would make the next load wait.
    const char* const mask = piece_cache_internal::kMask.bytes + 32 - piece.size();
    return {{Load(bytes) & Load(mask), Load(bytes + 8) & Load(mask + 8),
             Load(bytes + 16) & Load(mask + 16),
             (Load(bytes + 24) & Load(mask + 24)) | uint64_t{piece.size()} << 56}};
  }

  // Where the key's entry is or may be put: at most one piece has it. An entry without a piece
  // equals no key.
  Entry* At(const Key& key) {
    using Wide = unsigned __int128;
    const Wide low =
        Wide{key.words[0] ^ 0x9E3779B97F4A7C15u} * (key.words[1] ^ 0xC2B2AE3D27D4EB4Fu);
    const Wide high =
        Wide{key.words[2] ^ 0x165667B19E3779F9u} * (key.words[3] ^ 0xD6E8FEB86659FD93u);
    const Wide both = low ^ high;
    const uint64_t hash = static_cast<uint64_t>(both) ^ static_cast<uint64_t>(both >> 64);
    return &entries_[static_cast<size_t>(hash * 0x9E3779B97F4A7C15u >> (64 - kBits))];
  }
  // At, with the entry's memory on its way; for use some time later.
  Entry* Prefetch(const Key& key) {
    Entry* const entry = At(key);
    __builtin_prefetch(entry);
    return entry;
  }

 private:
  static uint64_t Load(const char* p) {
    uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    return word;
  }

  static constexpr int kBits = 16;  // 4 MiB: more than a second-level cache has, hence Prefetch
  static constexpr size_t kEntries = size_t{1} << kBits;

  std::vector<Entry> entries_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_PIECE_CACHE_H_
