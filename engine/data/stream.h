// SPDX-License-Identifier: Apache-2.0
//
// The data stream: the one sequence of training windows that a corpus, a seed and a sequence length
// define, whatever machine reads it (the paper, section 2.3). Draws are Philox's, so that any place
// in it can be told apart without a past. Definition: docs/stream.md. Which windows belong to
// a step is in schedule.h.
#ifndef LOCKSTEP_ENGINE_DATA_STREAM_H_
#define LOCKSTEP_ENGINE_DATA_STREAM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/cursor.h"
#include "engine/data/mix.h"
#include "engine/data/shard_reader.h"

namespace lockstep::engine {

// Tokens of one document that lie side by side in a window.
struct TokenSpan {
  uint32_t source;
  uint32_t shard;
  uint32_t document;  // within the shard, in file order
  uint32_t begin;     // within the document; the separator is its last token
  uint32_t end;
  uint32_t shard_begin;  // the place of `begin` within the shard's tokens
  bool operator==(const TokenSpan&) const = default;
};

// Not for several threads at once; two streams over one reader may run side by side.
//
// A walk reads shard indices, never tokens: a window that nobody here needs costs a few look-ups.
// Whatever fails (a file that is missing, a mirror that does not answer), the stream is where it
// was before the call, and the call may be made again.
class Stream {
 public:
  // Stands before window 0. seq_len: 1 ... kSeqLenMax; a window has seq_len + 1 tokens, inputs and
  // labels together.
  static absl::StatusOr<Stream> Open(std::shared_ptr<const CorpusReader> corpus, uint64_t seed,
                                     uint64_t seq_len);

  uint64_t window() const { return cursor_.window; }  // the next one's number
  uint64_t window_tokens() const { return window_tokens_; }
  const CorpusReader& corpus() const { return *corpus_; }

  const StreamCursor& cursor() const { return cursor_; }

  // To a place that cursor() gave once, on any machine. A cursor of another stream is
  // InvalidArgument, which says what differs: corpus, seed or sequence length. One whose numbers
  // contradict each other or the corpus is DataLoss: documents against draws, the cut document
  // against the orders that the seed gives, and tokens drawn against windows. After an error the
  // stream has not moved.
  absl::Status Seek(const StreamCursor& cursor);

  // Past `windows` windows.
  absl::Status Skip(uint64_t windows);

  // The spans of the next window, in order, window_tokens() in all; *spans is replaced.
  absl::Status Next(std::vector<TokenSpan>* spans);

  // Their tokens, one after another: out has room for exactly as many. Any thread, and while
  // another moves the stream.
  absl::Status ReadTokens(std::span<const TokenSpan> spans, std::span<int32_t> out) const;

 private:
  struct OrderedDocument {
    uint32_t document;
    uint32_t begin;  // within the shard
    uint32_t tokens;
  };
  // The shard that a source stands in: its documents in the epoch's order. `first` is the number of
  // the epoch's documents before it. A cache: it follows from a SourcePosition.
  struct OpenShard {
    uint64_t epoch = 0;
    uint64_t first = 0;
    uint32_t shard = 0;
    uint64_t tokens_before = 0;  // of the epoch's shards before it
    std::vector<OrderedDocument> documents;
    bool Has(const SourcePosition& p) const {
      return p.epoch == epoch && p.documents >= first && p.documents - first < documents.size();
    }
  };
  // A document in the course of being cut into windows.
  struct Cut {
    uint32_t source = 0;
    uint32_t shard = 0;
    OrderedDocument document = {};
    uint32_t taken = 0;  // tokens that windows have; taken == document.tokens: none is left
  };

  Stream(std::shared_ptr<const CorpusReader> corpus, uint64_t seed, uint64_t seq_len,
         SourceMix mix);

  absl::Status Advance(uint64_t tokens, uint64_t windows, std::vector<TokenSpan>* spans);
  absl::Status AdvanceOrStop(uint64_t tokens, std::vector<TokenSpan>* spans);
  absl::Status Draw();
  absl::StatusOr<OpenShard> Load(uint32_t source, const SourcePosition& position) const;
  absl::Status CheckCounts(const StreamCursor& cursor) const;
  absl::StatusOr<Cut> LocateCarry(const StreamCursor& cursor,
                                  const std::vector<OpenShard>& open) const;
  absl::Status CheckTokens(const StreamCursor& cursor, const std::vector<OpenShard>& open,
                           const Cut& cut) const;

  std::shared_ptr<const CorpusReader> corpus_;
  uint64_t seed_;
  uint64_t window_tokens_;  // seq_len + 1
  SourceMix mix_;
  std::vector<std::string> random_names_;  // by source, the beginning of its random streams' names
  StreamCursor cursor_;
  StreamCursor before_;          // where a call began
  std::vector<OpenShard> open_;  // by source
  Cut cut_;
};

// Skips to `window`, which is not behind the stream (InvalidArgument), in pieces between which
// `interrupted` is asked (Cancelled) and `progress` is told the windows walked.
absl::Status WalkTo(Stream& stream, uint64_t window,
                    absl::FunctionRef<void(int64_t windows)> progress,
                    absl::FunctionRef<bool()> interrupted);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_STREAM_H_
