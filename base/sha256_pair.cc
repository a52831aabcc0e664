// SPDX-License-Identifier: Apache-2.0
//
// Blocks and padding of two messages (FIPS 180-4, section 5.1.1). The rounds are in
// sha256_pair_x86.cc.

#include "base/sha256_pair.h"

#include <algorithm>

#include "base/sha256_compress.h"

namespace lockstep {
namespace sha256_internal {

#if !defined(__x86_64__)
bool CanCompressPair() noexcept { return false; }
void CompressPair(uint32_t* const*, const uint8_t* const*, size_t) noexcept {}
#endif

}  // namespace sha256_internal
namespace {

constexpr size_t kBlock = 64;
// Section 5.3.3.
using State = std::array<uint32_t, 8>;
constexpr State kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// Two messages whose parts have the same lengths, block by block.
class PairHasher {
 public:
  // Whole blocks, from where each message's begin.
  void Blocks(const uint8_t* a, const uint8_t* b, size_t blocks) {
    const uint8_t* const data[2] = {a, b};
    uint32_t* const states[2] = {states_[0].data(), states_[1].data()};
    sha256_internal::CompressPair(states, data, blocks);
  }
  // The last bytes, fewer than a block, of messages that have `bytes` in all.
  void End(const uint8_t* a, const uint8_t* b, size_t rest, uint64_t bytes) {
    uint8_t tails[2][2 * kBlock] = {};
    const size_t blocks = rest + 1 + 8 > kBlock ? 2 : 1;
    const uint8_t* const data[2] = {a, b};
    for (int m = 0; m < 2; ++m) {
      std::copy_n(data[m], rest, tails[m]);
      tails[m][rest] = 0x80;
      for (int i = 0; i < 8; ++i) {
        tails[m][blocks * kBlock - 1 - i] = static_cast<uint8_t>(bytes * 8 >> (8 * i));
      }
    }
    Blocks(tails[0], tails[1], blocks);
  }
  Digest Result(int message) const {
    Digest digest;
    for (int word = 0; word < 8; ++word) {
      for (int i = 0; i < 4; ++i) {
        digest.bytes[4 * word + i] = static_cast<uint8_t>(states_[message][word] >> (24 - 8 * i));
      }
    }
    return digest;
  }

 private:
  State states_[2] = {kInitial, kInitial};
};

// What begins a message: its head, and as much of its body as fills a block.
struct Beginning {
  Beginning(const SplitMessage& message, size_t from_body) {
    uint8_t* const end = std::copy(message.head.begin(), message.head.end(), bytes);
    std::copy_n(message.body.begin(), from_body, end);
  }
  uint8_t bytes[kBlock];
};

}  // namespace

std::array<Digest, 2> Sha256Pair(const SplitMessage& a, const SplitMessage& b) {
  static const bool at_once = sha256_internal::CanCompressPair();
  const size_t head = a.head.size();
  const size_t body = a.body.size();
  if (!at_once || head >= kBlock || b.head.size() != head || b.body.size() != body) {
    return {Sha256({a.head, a.body}), Sha256({b.head, b.body})};
  }
  PairHasher hasher;
  size_t done = 0;  // of the bodies
  if (head > 0) {
    done = std::min(kBlock - head, body);
    const Beginning first(a, done);
    const Beginning second(b, done);
    if (head + done < kBlock) {
      hasher.End(first.bytes, second.bytes, head + done, head + body);
      return {hasher.Result(0), hasher.Result(1)};
    }
    hasher.Blocks(first.bytes, second.bytes, 1);
  }
  const size_t blocks = (body - done) / kBlock;
  hasher.Blocks(a.body.data() + done, b.body.data() + done, blocks);
  done += blocks * kBlock;
  hasher.End(a.body.data() + done, b.body.data() + done, body - done, head + body);
  return {hasher.Result(0), hasher.Result(1)};
}

}  // namespace lockstep
