// SPDX-License-Identifier: Apache-2.0
//
// A model of the stream that is slow and obvious, after docs/stream.md: it writes out every
// document that is ever drawn into one list of tokens, and cuts that list. It shares nothing with
// the stream but Philox's draws. With it, random corpora for trials (seed and trial are printed)
// that contain what is rare: empty sources, single ones, documents of no token or longer than many
// windows, epochs that end at once.
#ifndef LOCKSTEP_ENGINE_DATA_TESTING_STREAM_MODEL_H_
#define LOCKSTEP_ENGINE_DATA_TESTING_STREAM_MODEL_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/sha256.h"
#include "base/testing/status_matchers.h"
#include "engine/data/stream.h"
#include "engine/data/testing/memory_corpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/random/random.h"

namespace lockstep::engine::testing {

// One token of the flat buffer, and where it is from.
struct Placed {
  int32_t token;
  uint32_t source, shard, document, offset;
};

// The definition, written down as plainly as it goes.
class Model {
 public:
  Model(std::vector<MemorySource> sources, uint64_t seed)
      : sources_(std::move(sources)), seed_(seed), orders_(sources_.size()) {
    absl::uint128 shares = 0;
    std::vector<absl::uint128> tokens, documents, share;
    for (const MemorySource& source : sources_) {
      uint64_t t = 0, d = 0;
      for (const auto& shard : source.shards) {
        for (const Tokens& document : shard) t += document.size() + 1, d += 1;
      }
      tokens.push_back(t);
      documents.push_back(d);
      share.push_back(source.share.value_or(t));
      if (d > 0) shares += share.back();
    }
    for (size_t i = 0; i < sources_.size(); ++i) {
      absl::uint128 weight = 0;
      if (documents[i] > 0 && share[i] > 0) {
        weight = share[i] * (absl::uint128(1) << 63) / shares * documents[i] / tokens[i];
      }
      weights_.push_back(static_cast<uint64_t>(weight));
    }
  }

  // Tokens [m * length, (m + 1) * length) of the flat buffer.
  std::vector<Placed> Window(uint64_t m, uint64_t length) {
    while (buffer_.size() < (m + 1) * length) Draw();
    return {buffer_.begin() + m * length, buffer_.begin() + (m + 1) * length};
  }

  uint64_t draws() const { return draws_; }

 private:
  struct Order {
    uint64_t epoch = 0;
    size_t next = 0;
    std::vector<std::pair<uint32_t, uint32_t>> documents;  // of the epoch: shard, document
  };

  void Draw() {
    uint64_t total = 0;
    for (uint64_t weight : weights_) total += weight;
    uint64_t u = kernels::RandomBelow(seed_, kernels::StreamOf("data/mix"), draws_++, total);
    uint32_t source = 0;
    while (u >= weights_[source]) u -= weights_[source++];
    Order& order = orders_[source];
    if (order.next == order.documents.size()) {
      if (!order.documents.empty()) ++order.epoch;
      Shuffle(source, order);
    }
    const auto [shard, document] = order.documents[order.next++];
    Tokens tokens = sources_[source].shards[shard][document];
    tokens.push_back(0);
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      buffer_.push_back({tokens[i], source, shard, document, i});
    }
  }

  void Shuffle(uint32_t source, Order& order) {
    const std::string name = absl::StrCat("data/", Sha256(AsBytes(sources_[source].name)).ToHex(),
                                          "/epoch.", order.epoch);
    order.next = 0;
    order.documents.clear();
    const auto& shards = sources_[source].shards;
    for (int64_t shard : kernels::RandomPermutation(
             seed_, kernels::StreamOf(absl::StrCat(name, "/shards")), shards.size())) {
      const uint64_t stream = kernels::StreamOf(absl::StrCat(name, "/shard.", shard, "/documents"));
      for (int64_t document : kernels::RandomPermutation(seed_, stream, shards[shard].size())) {
        order.documents.emplace_back(shard, document);
      }
    }
  }

  std::vector<MemorySource> sources_;
  uint64_t seed_;
  std::vector<uint64_t> weights_;
  std::vector<Order> orders_;
  uint64_t draws_ = 0;
  std::vector<Placed> buffer_;
};

// A window with its tokens, in the form that both sides can be given.
using FlatWindow = std::vector<std::array<uint32_t, 5>>;  // source, shard, document, place, token

inline FlatWindow Flat(const std::vector<Placed>& window) {
  FlatWindow flat;
  for (const Placed& p : window) {
    flat.push_back({p.source, p.shard, p.document, p.offset, static_cast<uint32_t>(p.token)});
  }
  return flat;
}

inline FlatWindow Flat(std::span<const TokenSpan> spans, std::span<const int32_t> tokens) {
  FlatWindow flat;
  for (const TokenSpan& span : spans) {
    for (uint32_t i = span.begin; i < span.end; ++i) {
      flat.push_back(
          {span.source, span.shard, span.document, i, static_cast<uint32_t>(tokens[flat.size()])});
    }
  }
  return flat;
}

inline FlatWindow Flat(const Stream& stream, const std::vector<TokenSpan>& spans) {
  std::vector<int32_t> tokens(stream.window_tokens());
  EXPECT_THAT(stream.ReadTokens(spans, tokens), IsOk());
  return Flat(spans, tokens);
}

// Random numbers of one trial.
class Dice {
 public:
  explicit Dice(uint64_t trial) : trial_(trial) {}
  uint64_t Below(uint64_t bound) { return kernels::RandomBelow(/*seed=*/20, trial_, n_++, bound); }

 private:
  uint64_t trial_;
  uint64_t n_ = 0;
};

inline std::vector<MemorySource> RandomSources(Dice& dice, uint64_t seq_len) {
  std::vector<MemorySource> sources;
  const uint64_t count = 1 + dice.Below(4);
  for (uint64_t s = 0; s < count; ++s) {
    MemorySource source = {.name = absl::StrCat("source-", s), .shards = {}, .share = {}};
    // The first source is never empty, so that there is a stream.
    const uint64_t shards = s > 0 && dice.Below(4) == 0 ? 0 : 1 + dice.Below(4);
    for (uint64_t i = 0; i < shards; ++i) {
      std::vector<Tokens>& shard =
          source.shards.emplace_back(1 + dice.Below(dice.Below(2) ? 1 : 6));
      for (Tokens& document : shard) {
        const bool long_one = dice.Below(6) == 0;
        document.resize(dice.Below(long_one ? 5 * seq_len + 2 : seq_len + 2));
        for (int32_t& token : document) token = 1 + static_cast<int32_t>(dice.Below(999));
      }
    }
    if (dice.Below(2) == 0) source.share = s == 0 ? 1 + dice.Below(100) : dice.Below(100);
    sources.push_back(source);
  }
  return sources;
}

// A corpus, a stream over it, and the model of both.
struct Trial {
  explicit Trial(uint64_t number)
      : dice(number),
        seed(dice.Below(1000)),
        seq_len(1 + dice.Below(20)),
        sources(RandomSources(dice, seq_len)),
        corpus(MakeMemoryCorpus(sources, dice.Below(2) ? 1000 : 70000)),
        model(sources, seed) {}

  Stream Open() {
    absl::StatusOr<Stream> stream = Stream::Open(corpus.reader, seed, seq_len);
    EXPECT_THAT(stream, IsOk());
    return *std::move(stream);
  }
  void ExpectNext(Stream& stream) {
    const uint64_t window = stream.window();
    std::vector<TokenSpan> spans;
    ASSERT_THAT(stream.Next(&spans), IsOk());
    ASSERT_EQ(Flat(stream, spans), Flat(model.Window(window, seq_len + 1))) << "window " << window;
    ASSERT_EQ(stream.window(), window + 1);
  }

  Dice dice;
  uint64_t seed;
  uint64_t seq_len;
  std::vector<MemorySource> sources;
  MemoryCorpus corpus;
  Model model;
};

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_DATA_TESTING_STREAM_MODEL_H_
