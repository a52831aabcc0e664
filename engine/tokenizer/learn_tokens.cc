// SPDX-License-Identifier: Apache-2.0
//
// Learning merges: all distinct pieces lie one after another as a linked list of tokens; each pair
// of neighbours knows its count and its places, so that a merge touches the places of its pair and
// nothing else.
#include <algorithm>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "engine/tokenizer/train.h"

namespace lockstep::engine {
namespace {

constexpr uint32_t kNowhere = 0xFFFFFFFF;
constexpr int64_t kCountMin = 2;

struct Pair {
  int32_t left;
  int32_t right;
  int64_t count = 0;
  // Where it was put together, ascending; it may have been taken apart since.
  std::vector<uint32_t> places;
};

// A pair as it once stood in the order of learning. Counts only fall once the merge that made a
// pair's younger half is over, so that the first entry whose count is still true is the most
// frequent pair.
struct Candidate {
  int64_t count;
  int32_t left;
  int32_t right;
  uint32_t pair;

  bool operator<(const Candidate& other) const {  // comes later
    if (count != other.count) return count < other.count;
    if (left != other.left) return left > other.left;
    return right > other.right;
  }
};

class Learner {
 public:
  explicit Learner(const std::vector<PieceCount>& pieces) {
    for (int byte = 0; byte < 256; ++byte) tokens_.emplace_back(1, static_cast<char>(byte));
    size_t bytes = 0;
    for (const PieceCount& piece : pieces) bytes += piece.piece.size();
    ids_.reserve(bytes);
    next_.reserve(bytes);
    previous_.reserve(bytes);
    piece_of_.reserve(bytes);
    for (const PieceCount& piece : pieces) AddPiece(piece);
    Push();
  }

  // False where no pair is left to learn.
  bool LearnOne() {
    while (!candidates_.empty()) {
      const Candidate candidate = candidates_.top();
      candidates_.pop();
      const int64_t count = pairs_[candidate.pair].count;
      if (candidate.count == count) {
        MergeAll(candidate);
        return true;
      }
      if (count >= kCountMin) {
        candidates_.push({count, candidate.left, candidate.right, candidate.pair});
      }
    }
    return false;
  }

  std::vector<std::string> TakeTokens() { return std::move(tokens_); }

 private:
  void AddPiece(const PieceCount& piece) {
    const auto begin = static_cast<uint32_t>(ids_.size());
    const auto size = static_cast<uint32_t>(piece.piece.size());
    for (uint32_t i = 0; i < size; ++i) {
      ids_.push_back(static_cast<uint8_t>(piece.piece[i]));
      previous_.push_back(i == 0 ? kNowhere : begin + i - 1);
      next_.push_back(i + 1 == size ? kNowhere : begin + i + 1);
      piece_of_.push_back(static_cast<uint32_t>(counts_.size()));
      if (i > 0) Add(ids_[begin + i - 1], ids_[begin + i], begin + i - 1, piece.count);
    }
    counts_.push_back(piece.count);
  }

  void Add(int32_t left, int32_t right, uint32_t place, int64_t count) {
    const auto [at, is_new] =
        pair_at_.try_emplace(KeyOf(left, right), static_cast<uint32_t>(pairs_.size()));
    if (is_new) pairs_.push_back({left, right, 0, {}});
    Pair& pair = pairs_[at->second];
    pair.count += count;
    pair.places.push_back(place);
  }

  void Remove(int32_t left, int32_t right, int64_t count) {
    pairs_[pair_at_.find(KeyOf(left, right))->second].count -= count;
  }

  // Makes the pairs that are new candidates.
  void Push() {
    for (; pushed_ < pairs_.size(); ++pushed_) {
      const Pair& pair = pairs_[pushed_];
      const size_t bytes = tokens_[pair.left].size() + tokens_[pair.right].size();
      if (pair.count < kCountMin || bytes > kTokenBytesMax) continue;
      candidates_.push({pair.count, pair.left, pair.right, static_cast<uint32_t>(pushed_)});
    }
  }

  void MergeAll(const Candidate& pair) {
    const auto id = static_cast<int32_t>(tokens_.size());
    tokens_.push_back(tokens_[pair.left] + tokens_[pair.right]);
    const std::vector<uint32_t> places = std::move(pairs_[pair.pair].places);
    for (uint32_t at : places) {
      if (ids_[at] != pair.left || next_[at] == kNowhere || ids_[next_[at]] != pair.right) continue;
      MergeAt(at, id);
    }
    pairs_[pair.pair].places = {};
    pairs_[pair.pair].count = 0;
    Push();
  }

  void MergeAt(uint32_t at, int32_t id) {
    const uint32_t second = next_[at];
    const uint32_t before = previous_[at];
    const uint32_t after = next_[second];
    const int64_t count = counts_[piece_of_[at]];
    if (before != kNowhere) {
      Remove(ids_[before], ids_[at], count);
      Add(ids_[before], id, before, count);
    }
    if (after != kNowhere) {
      Remove(ids_[second], ids_[after], count);
      Add(id, ids_[after], at, count);
      previous_[after] = at;
    }
    next_[at] = after;
    ids_[at] = id;
    ids_[second] = -1;
  }

  static uint64_t KeyOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::vector<std::string> tokens_;
  std::vector<int64_t> counts_;  // of pieces
  // Of each byte of the pieces: the token that begins there or -1, the neighbours in its piece, and
  // the piece.
  std::vector<int32_t> ids_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> previous_;
  std::vector<uint32_t> piece_of_;
  std::vector<Pair> pairs_;
  size_t pushed_ = 0;
  absl::flat_hash_map<uint64_t, uint32_t> pair_at_;
  std::priority_queue<Candidate> candidates_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> LearnTokens(const std::vector<PieceCount>& pieces,
                                                     int64_t merges, const TrainHooks& hooks) {
  uint64_t bytes = 0;
  for (const PieceCount& piece : pieces) bytes += piece.piece.size();
  if (bytes >= kNowhere) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the distinct pieces of the text have ", bytes, " bytes; at most ",
                     kNowhere - 1, " can be learnt from: train on a sample of the text"));
  }
  Learner learner(pieces);
  for (int64_t i = 0; i < merges; ++i) {
    if (hooks.interrupted()) {
      return absl::CancelledError("interrupted while learning merges; nothing was written");
    }
    if (!learner.LearnOne()) break;
    hooks.merges_made(1);
  }
  return learner.TakeTokens();
}

absl::StatusOr<Vocabulary> TrainVocabulary(const TextSource& source, int64_t size,
                                           const std::vector<std::string>& special_tokens,
                                           ThreadPool& pool, const TrainHooks& hooks) {
  const auto special = static_cast<int64_t>(special_tokens.size());
  if (special == 0) return absl::InvalidArgumentError("expected a special token: the end of text");
  if (size < 256 + special || size > kVocabularyMax) {
    return absl::InvalidArgumentError(absl::StrCat("a vocabulary of ", size, "; expected ",
                                                   256 + special, " (bytes and special tokens) to ",
                                                   kVocabularyMax));
  }
  // What is wrong with the special tokens is found before the work.
  Vocabulary vocabulary;
  LOCKSTEP_ASSIGN_OR_RETURN(vocabulary.tokens, LearnTokens({}, 0, hooks));
  vocabulary.special_tokens = special_tokens;
  vocabulary.end_of_text = 256;
  LOCKSTEP_RETURN_IF_ERROR(ValidateVocabulary(vocabulary));

  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<PieceCount> pieces, CountPieces(source, pool, hooks));
  LOCKSTEP_ASSIGN_OR_RETURN(vocabulary.tokens, LearnTokens(pieces, size - 256 - special, hooks));
  vocabulary.end_of_text = static_cast<int32_t>(vocabulary.tokens.size());
  LOCKSTEP_RETURN_IF_ERROR(ValidateVocabulary(vocabulary));
  return vocabulary;
}

}  // namespace lockstep::engine
