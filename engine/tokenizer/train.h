// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding learnt from text. Which merges are learnt depends on the text alone, not on
// threads or on how the text is cut into parts: pieces are counted, then the merges follow from the
// counts. Source: Sennrich et al. 2016, on bytes.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_TRAIN_H_
#define LOCKSTEP_ENGINE_TOKENIZER_TRAIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/thread_pool.h"
#include "engine/tokenizer/text_source.h"
#include "engine/tokenizer/vocabulary.h"

namespace lockstep::engine {

// Long work asks `interrupted` often, and stops with Cancelled when it says so. The others hear
// what was done since they were last called. All from any thread.
struct TrainHooks {
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(int64_t bytes)> bytes_counted = [](int64_t) {};
  std::function<void(int64_t merges)> merges_made = [](int64_t) {};
};

struct PieceCount {
  std::string piece;
  int64_t count;
  bool operator==(const PieceCount&) const = default;
};

// How often each piece comes in the source, in the order of the pieces as bytes. Errors: the
// source's; Cancelled.
absl::StatusOr<std::vector<PieceCount>> CountPieces(const TextSource& source, ThreadPool& pool,
                                                    const TrainHooks& hooks);

// Learns at most `merges` merges: the tokens 0 ... 255 are the bytes, and each further one is made
// of the pair of neighbours that is most frequent in the pieces as they stand; of equals the one
// whose left id is lowest, then whose right id is. Every place where the pair stands counts, also
// overlapping ones, times the piece's count. Its places then merge from left to right. A pair of
// count 1 is not learnt, nor one that makes a token of more than kTokenBytesMax bytes: fewer tokens
// than asked for is not an error. Pieces of more than 2^32 - 1 bytes in all are ResourceExhausted.
// On the calling thread; needs 16 bytes of memory for each byte of distinct pieces, and 4 for each
// place of a pair.
absl::StatusOr<std::vector<std::string>> LearnTokens(const std::vector<PieceCount>& pieces,
                                                     int64_t merges, const TrainHooks& hooks);

// Both, for a vocabulary of at most `size` entries with the special tokens at the end; the first
// one is the end of text. InvalidArgument if `size` does not hold the bytes and the special tokens.
absl::StatusOr<Vocabulary> TrainVocabulary(const TextSource& source, int64_t size,
                                           const std::vector<std::string>& special_tokens,
                                           ThreadPool& pool, const TrainHooks& hooks);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_TRAIN_H_
