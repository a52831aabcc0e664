// SPDX-License-Identifier: Apache-2.0
//
// The walk along a data stream. See stream.h; the numbered rules are those of docs/stream.md.
#include "engine/data/stream.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/status.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

absl::Status Contradiction(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("stream cursor: ", what, "; it is damaged, or parts of two cursors were mixed"));
}

absl::Status CheckKey(const StreamKey& expected, const StreamKey& found) {
  if (expected == found) return absl::OkStatus();
  const auto fail = [](absl::string_view what, const auto& expected, const auto& found) {
    return absl::InvalidArgumentError(
        absl::StrCat("stream cursor: it belongs to another stream: ", what, ": expected ", expected,
                     ", found ", found));
  };
  if (expected.manifest != found.manifest) {
    return fail("corpus manifest", expected.manifest.ToHex(), found.manifest.ToHex());
  }
  if (expected.seed != found.seed) return fail("seed", expected.seed, found.seed);
  return fail("sequence length", expected.seq_len, found.seq_len);
}

}  // namespace

absl::StatusOr<Stream> Stream::Open(std::shared_ptr<const CorpusReader> corpus, uint64_t seed,
                                    uint64_t seq_len) {
  if (seq_len < 1 || seq_len > kSeqLenMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence length: expected 1 to ", kSeqLenMax, ", found ", seq_len));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(SourceMix mix, SourceMix::Create(corpus->manifest(), seed));
  return Stream(std::move(corpus), seed, seq_len, std::move(mix));
}

Stream::Stream(std::shared_ptr<const CorpusReader> corpus, uint64_t seed, uint64_t seq_len,
               SourceMix mix)
    : corpus_(std::move(corpus)), seed_(seed), window_tokens_(seq_len + 1), mix_(std::move(mix)) {
  for (const SourceEntry& source : corpus_->manifest().sources) {
    random_names_.push_back(absl::StrCat("data/", Sha256(AsBytes(source.name)).ToHex()));
  }
  cursor_.key = {corpus_->digest(), seed, seq_len};
  cursor_.sources.resize(random_names_.size());
  open_.resize(random_names_.size());
}

// Rules 2 and 3: the epoch's order of shards, and the shard's order of documents.
absl::StatusOr<Stream::OpenShard> Stream::Load(uint32_t source,
                                               const SourcePosition& position) const {
  const std::vector<ShardEntry>& shards = corpus_->manifest().sources[source].shards;
  const std::string epoch = absl::StrCat(random_names_[source], "/epoch.", position.epoch);
  const std::vector<int64_t> shard_order =
      kernels::RandomPermutation(seed_, kernels::StreamOf(absl::StrCat(epoch, "/shards")),
                                 static_cast<int64_t>(shards.size()));
  OpenShard open;
  open.epoch = position.epoch;
  size_t at = 0;
  while (position.documents - open.first >= shards[shard_order[at]].documents) {
    open.first += shards[shard_order[at]].documents;
    open.tokens_before += shards[shard_order[at]].tokens;
    ++at;
  }
  open.shard = static_cast<uint32_t>(shard_order[at]);
  LOCKSTEP_ASSIGN_OR_RETURN(const ShardIndex index, corpus_->ReadIndex(source, open.shard));
  const uint64_t random_stream =
      kernels::StreamOf(absl::StrCat(epoch, "/shard.", open.shard, "/documents"));
  open.documents.reserve(index.documents());
  for (int64_t document :
       kernels::RandomPermutation(seed_, random_stream, static_cast<int64_t>(index.documents()))) {
    const uint32_t begin = index.begins[document];
    open.documents.push_back(
        {static_cast<uint32_t>(document), begin, index.begins[document + 1] - begin});
  }
  return open;
}

// Rule 1: one draw of the mix names the source, whose next document follows.
absl::Status Stream::Draw() {
  const uint32_t source = mix_.SourceOfDraw(cursor_.draws);
  SourcePosition& position = cursor_.sources[source];
  OpenShard& open = open_[source];
  if (!open.Has(position)) [[unlikely]] {
    LOCKSTEP_ASSIGN_OR_RETURN(open, Load(source, position));
  }
  cut_ = {source, open.shard, open.documents[position.documents - open.first], 0};
  ++cursor_.draws;
  ++position.documents;
  if (position.documents == corpus_->manifest().sources[source].documents) {
    position = {position.epoch + 1, 0};
  }
  return absl::OkStatus();
}

// Rule 4. A document is drawn only when a window lacks tokens, so what is left over at a window's
// end is never more than the rest of one document.
absl::Status Stream::AdvanceOrStop(uint64_t tokens, std::vector<TokenSpan>* spans) {
  while (tokens > 0) {
    if (cut_.taken == cut_.document.tokens) LOCKSTEP_RETURN_IF_ERROR(Draw());
    const auto count =
        static_cast<uint32_t>(std::min<uint64_t>(tokens, cut_.document.tokens - cut_.taken));
    if (spans != nullptr) {
      spans->push_back({cut_.source, cut_.shard, cut_.document.document, cut_.taken,
                        cut_.taken + count, cut_.document.begin + cut_.taken});
    }
    cut_.taken += count;
    tokens -= count;
  }
  return absl::OkStatus();
}

absl::Status Stream::Advance(uint64_t tokens, uint64_t windows, std::vector<TokenSpan>* spans) {
  before_ = cursor_;
  const Cut cut_before = cut_;
  if (absl::Status status = AdvanceOrStop(tokens, spans); !status.ok()) {
    cursor_ = before_;
    cut_ = cut_before;
    if (spans != nullptr) spans->clear();
    return WithContext(std::move(status), absl::StrCat("data stream, from window ", window()));
  }
  cursor_.window += windows;
  cursor_.carry.reset();
  if (cut_.taken < cut_.document.tokens) {
    cursor_.carry = CarryOver{cut_.source, cut_.shard, cut_.document.document, cut_.taken};
  }
  return absl::OkStatus();
}

absl::Status Stream::Skip(uint64_t windows) {
  const uint64_t windows_max = UINT64_MAX / window_tokens_;
  if (windows > windows_max - std::min(windows_max, cursor_.window)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot skip ", windows, " windows from window ",
                                                   window(), ": their tokens exceed 2^64"));
  }
  return Advance(windows * window_tokens_, windows, nullptr);
}

absl::Status Stream::Next(std::vector<TokenSpan>* spans) {
  spans->clear();
  return Advance(window_tokens_, 1, spans);
}

absl::Status Stream::CheckCounts(const StreamCursor& cursor) const {
  const std::vector<SourceEntry>& sources = corpus_->manifest().sources;
  LOCKSTEP_RETURN_IF_ERROR(CheckKey(cursor_.key, cursor.key));
  if (cursor.sources.size() != sources.size()) {
    return Contradiction(
        absl::StrCat("expected ", sources.size(), " sources, found ", cursor.sources.size()));
  }
  absl::uint128 drawn = 0;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    const SourcePosition& position = cursor.sources[i];
    const bool begun = position.epoch > 0 || position.documents > 0;
    if (begun && (!mix_.HasWeight(i) || position.documents >= sources[i].documents)) {
      return Contradiction(absl::StrCat("source ", sources[i].name, ": ", position.documents,
                                        " documents of epoch ", position.epoch, ", it has ",
                                        sources[i].documents, " and ",
                                        mix_.HasWeight(i) ? "some" : "no", " weight"));
    }
    drawn += absl::uint128(position.epoch) * sources[i].documents + position.documents;
  }
  if (drawn != cursor.draws) {
    return Contradiction(
        absl::StrCat(cursor.draws, " draws, but the sources' documents are another number"));
  }
  return absl::OkStatus();
}

// The document that the last draw gave is the only one that can be cut.
absl::StatusOr<Stream::Cut> Stream::LocateCarry(const StreamCursor& cursor,
                                                const std::vector<OpenShard>& open) const {
  if (!cursor.carry) return Cut{};
  const CarryOver& carry = *cursor.carry;
  if (cursor.draws == 0 || carry.source != mix_.SourceOfDraw(cursor.draws - 1)) {
    return Contradiction("the document carried over is of another source than the last draw");
  }
  SourcePosition last = cursor.sources[carry.source];
  if (last.documents == 0) {
    if (last.epoch == 0)
      return Contradiction("a document is carried over of a source at its start");
    last = {last.epoch - 1, corpus_->manifest().sources[carry.source].documents};
  }
  --last.documents;
  OpenShard loaded;
  const OpenShard* shard = &open[carry.source];
  if (!shard->Has(last)) {
    LOCKSTEP_ASSIGN_OR_RETURN(loaded, Load(carry.source, last));
    shard = &loaded;
  }
  const OrderedDocument& document = shard->documents[last.documents - shard->first];
  if (carry.shard != shard->shard || carry.document != document.document || carry.token == 0 ||
      carry.token >= document.tokens) {
    return Contradiction(absl::StrCat("carried over: expected document ", document.document,
                                      " of shard ", shard->shard, " from a token of 1 to ",
                                      document.tokens - 1, ", found document ", carry.document,
                                      " of shard ", carry.shard, " from token ", carry.token));
  }
  return Cut{carry.source, carry.shard, document, carry.token};
}

absl::Status Stream::CheckTokens(const StreamCursor& cursor, const std::vector<OpenShard>& open,
                                 const Cut& cut) const {
  absl::uint128 tokens = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    const SourcePosition& position = cursor.sources[i];
    tokens += absl::uint128(position.epoch) * corpus_->manifest().sources[i].tokens;
    if (position.documents == 0) continue;
    tokens += open[i].tokens_before;
    for (uint64_t d = 0; d < position.documents - open[i].first; ++d) {
      tokens += open[i].documents[d].tokens;
    }
  }
  tokens -= cut.document.tokens - cut.taken;
  if (tokens != absl::uint128(cursor.window) * window_tokens_) {
    return Contradiction(absl::StrCat("it stands before window ", cursor.window,
                                      ", but the documents' tokens are those of another"));
  }
  return absl::OkStatus();
}

absl::Status Stream::Seek(const StreamCursor& cursor) {
  LOCKSTEP_RETURN_IF_ERROR(CheckCounts(cursor));
  std::vector<OpenShard> open(cursor.sources.size());
  for (uint32_t i = 0; i < open.size(); ++i) {
    if (cursor.sources[i].documents == 0) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(open[i], Load(i, cursor.sources[i]));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Cut cut, LocateCarry(cursor, open));
  LOCKSTEP_RETURN_IF_ERROR(CheckTokens(cursor, open, cut));
  cursor_ = cursor;
  open_ = std::move(open);
  cut_ = cut;
  return absl::OkStatus();
}

absl::Status Stream::ReadTokens(std::span<const TokenSpan> spans, std::span<int32_t> out) const {
  const std::vector<SourceEntry>& sources = corpus_->manifest().sources;
  size_t done = 0;
  for (const TokenSpan& span : spans) {
    const size_t count = span.end - span.begin;
    if (span.source >= sources.size() || span.shard >= sources[span.source].shards.size() ||
        span.end < span.begin || count > out.size() - done) {
      return absl::InvalidArgumentError("spans that are not this stream's, or too few places");
    }
    LOCKSTEP_RETURN_IF_ERROR(
        corpus_->ReadTokens(span.source, span.shard, span.shard_begin, out.subspan(done, count)));
    done += count;
  }
  if (done != out.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("spans of ", done, " tokens for ", out.size(), " places"));
  }
  return absl::OkStatus();
}

absl::Status WalkTo(Stream& stream, uint64_t window,
                    absl::FunctionRef<void(int64_t windows)> progress,
                    absl::FunctionRef<bool()> interrupted) {
  constexpr uint64_t kPiece = 1 << 16;
  if (window < stream.window()) {
    return absl::InvalidArgumentError(absl::StrCat("the cursor stands at window ", stream.window(),
                                                   ", past window ", window,
                                                   "; start from an earlier one, or from none"));
  }
  while (stream.window() < window) {
    if (interrupted()) return absl::CancelledError("interrupted");
    const uint64_t piece = std::min(kPiece, window - stream.window());
    LOCKSTEP_RETURN_IF_ERROR(stream.Skip(piece));
    progress(static_cast<int64_t>(piece));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::engine
