// SPDX-License-Identifier: Apache-2.0
//
// Merging: a scan for the lowest rank in short pieces, a heap in long ones.
#include "engine/tokenizer/merger.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace lockstep::engine {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

}  // namespace

Merger::Merger(const std::vector<std::string>& tokens)
    : tokens_(tokens), pairs_(tokens.size(), {-1, -1}), byte_pairs_(65536, -1) {
  int bits = 10;
  while (size_t{1} << bits < 2 * tokens.size()) ++bits;
  slots_.assign(size_t{1} << bits, kEmpty);
  shift_ = 64 - bits;
  for (int32_t id = 0; id < 256; ++id) byte_ids_[static_cast<uint8_t>(tokens[id][0])] = id;

  // Shorter tokens first: what a token is merged from is shorter than it.
  std::vector<int32_t> order(tokens.size() - 256);
  std::iota(order.begin(), order.end(), 256);
  std::stable_sort(order.begin(), order.end(),
                   [&tokens](int32_t a, int32_t b) { return tokens[a].size() < tokens[b].size(); });
  std::vector<int32_t> parts;
  for (int32_t id : order) {
    parts.resize(tokens[id].size());
    if (Encode(tokens[id], parts.data()) == 2) Insert(parts[0], parts[1], id);
  }
}

void Merger::Insert(int32_t left, int32_t right, int32_t id) {
  pairs_[id] = {left, right};
  const uint64_t key = KeyOf(left, right);
  size_t slot = SlotOf(key);
  while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = key << 20 | static_cast<uint64_t>(id);
  const std::string& token = tokens_[id];
  if (token.size() == 2) {
    byte_pairs_[static_cast<uint8_t>(token[0]) << 8 | static_cast<uint8_t>(token[1])] = id;
  }
}

int32_t Merger::Merge(int32_t left, int32_t right) const {
  const uint64_t key = KeyOf(left, right);
  for (size_t slot = SlotOf(key);; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot] >> 20 == key) return static_cast<int32_t>(slots_[slot] & 0xFFFFF);
    if (slots_[slot] == kEmpty) return -1;
  }
}

size_t Merger::EncodeShort(absl::string_view piece, int32_t* out) const {
  struct Part {
    int32_t id;
    uint32_t made;  // with the next part; kNone, above all ids, if nothing
  };
  Part parts[kShortBytes + 1];
  size_t n = piece.size();
  const auto byte = [&piece](size_t i) { return static_cast<uint8_t>(piece[i]); };
  for (size_t i = 0; i + 1 < n; ++i) {
    parts[i] = {byte_ids_[byte(i)], static_cast<uint32_t>(byte_pairs_[byte(i) << 8 | byte(i + 1)])};
  }
  parts[n - 1] = {byte_ids_[byte(n - 1)], kNone};
  while (true) {
    size_t best = 0;
    uint32_t least = parts[0].made;
    for (size_t i = 1; i < n; ++i) {
      const bool lower = parts[i].made < least;
      best = lower ? i : best;
      least = lower ? parts[i].made : least;
    }
    if (least == kNone) break;
    --n;
    for (size_t i = best + 1; i < n; ++i) parts[i] = parts[i + 1];
    const auto id = static_cast<int32_t>(least);
    parts[best] = {id, best + 1 < n ? static_cast<uint32_t>(Merge(id, parts[best + 1].id)) : kNone};
    if (best > 0) parts[best - 1].made = static_cast<uint32_t>(Merge(parts[best - 1].id, id));
  }
  for (size_t i = 0; i < n; ++i) out[i] = parts[i].id;
  return n;
}

// A part is named by its first byte. ids[] holds its id at its first and at its last byte, so that
// both neighbours are found; made[] at its first byte what it makes with the next one, and kNone
// where no part begins.
size_t Merger::EncodeLong(absl::string_view piece, int32_t* out) const {
  const size_t n = piece.size();
  std::vector<int32_t> ids(n);
  std::vector<uint32_t> made(n, kNone);
  // made << 40 | first byte: the least is the next merge. Entries that made[] no longer agrees with
  // are passed over.
  std::vector<uint64_t> heap;
  for (size_t i = 0; i < n; ++i) ids[i] = byte_ids_[static_cast<uint8_t>(piece[i])];
  for (size_t i = 0; i + 1 < n; ++i) {
    made[i] = static_cast<uint32_t>(
        byte_pairs_[static_cast<uint8_t>(piece[i]) << 8 | static_cast<uint8_t>(piece[i + 1])]);
    if (made[i] != kNone) heap.push_back(uint64_t{made[i]} << 40 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto set = [&](size_t at, int32_t left, int32_t right) {
    made[at] = static_cast<uint32_t>(Merge(left, right));
    if (made[at] == kNone) return;
    heap.push_back(uint64_t{made[at]} << 40 | at);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const uint64_t entry = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const size_t at = entry & ((uint64_t{1} << 40) - 1);
    const auto id = static_cast<uint32_t>(entry >> 40);
    if (made[at] != id) continue;
    const size_t middle = at + tokens_[ids[at]].size();
    const size_t end = at + tokens_[id].size();
    made[middle] = kNone;
    ids[at] = ids[end - 1] = static_cast<int32_t>(id);
    if (at > 0) {
      const int32_t before = ids[at - 1];
      set(at - tokens_[before].size(), before, static_cast<int32_t>(id));
    }
    if (end < n) {
      set(at, static_cast<int32_t>(id), ids[end]);
    } else {
      made[at] = kNone;
    }
  }
  size_t count = 0;
  for (size_t at = 0; at < n; at += tokens_[ids[at]].size()) out[count++] = ids[at];
  return count;
}

}  // namespace lockstep::engine
