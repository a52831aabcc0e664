// SPDX-License-Identifier: Apache-2.0
//
// The stream against a model of it that is slow and obvious: it writes out every document that is
// ever drawn into one list of tokens, and cuts that list. Corpora and resume points are random
// (seed and trial are printed), and made to contain what is rare: empty sources, single ones,
// documents longer than many windows, epochs that end at once.
#include "engine/data/stream.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "engine/data/schedule.h"
#include "engine/data/testing/memory_corpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;
using testing::MakeMemoryCorpus;
using testing::MemoryCorpus;
using testing::MemorySource;
using testing::Tokens;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

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
std::vector<std::array<uint32_t, 5>> Flat(const std::vector<Placed>& window) {
  std::vector<std::array<uint32_t, 5>> flat;
  for (const Placed& p : window) {
    flat.push_back({p.source, p.shard, p.document, p.offset, static_cast<uint32_t>(p.token)});
  }
  return flat;
}

std::vector<std::array<uint32_t, 5>> Flat(const Stream& stream,
                                          const std::vector<TokenSpan>& spans) {
  std::vector<int32_t> tokens(stream.window_tokens());
  EXPECT_THAT(stream.ReadTokens(spans, tokens), IsOk());
  std::vector<std::array<uint32_t, 5>> flat;
  for (const TokenSpan& span : spans) {
    for (uint32_t i = span.begin; i < span.end; ++i) {
      flat.push_back(
          {span.source, span.shard, span.document, i, static_cast<uint32_t>(tokens[flat.size()])});
    }
  }
  return flat;
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

std::vector<MemorySource> RandomSources(Dice& dice, uint64_t seq_len) {
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

constexpr uint64_t kTrials = 400;

TEST(Stream, IsTheModelsWindowByWindow) {
  uint64_t epochs_ended = 0;
  for (uint64_t number = 0; number < kTrials; ++number) {
    SCOPED_TRACE(absl::StrCat("trial ", number));
    Trial trial(number);
    Stream stream = trial.Open();
    for (int i = 0; i < 60; ++i) ASSERT_NO_FATAL_FAILURE(trial.ExpectNext(stream));
    EXPECT_EQ(stream.cursor().draws, trial.model.draws());
    for (const SourcePosition& position : stream.cursor().sources) epochs_ended += position.epoch;
  }
  EXPECT_GT(epochs_ended, kTrials);  // else the trials are too tame to show anything about epochs
}

TEST(Stream, ResumesAtEveryWindowByItsEncodedCursor) {
  uint64_t carried = 0, whole = 0, at_epoch_end = 0;
  for (uint64_t number = 0; number < kTrials; ++number) {
    SCOPED_TRACE(absl::StrCat("trial ", number));
    Trial trial(number);
    Stream writer = trial.Open();
    for (uint64_t window = 0; window < 25; ++window) {
      const std::string saved = EncodeCursor(writer.cursor());
      carried += writer.cursor().carry.has_value();
      whole += !writer.cursor().carry.has_value();
      for (const SourcePosition& p : writer.cursor().sources) {
        at_epoch_end += p.epoch > 0 && p.documents == 0;
      }
      const auto cursor = DecodeCursor(AsBytes(saved));
      ASSERT_THAT(cursor, IsOk());
      Stream reader = trial.Open();
      ASSERT_THAT(reader.Seek(*cursor), IsOk());
      EXPECT_EQ(EncodeCursor(reader.cursor()), saved);
      for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(trial.ExpectNext(reader));
      ASSERT_THAT(writer.Skip(1), IsOk());
    }
  }
  EXPECT_GT(carried, 1000);
  EXPECT_GT(whole, 1000);
  EXPECT_GT(at_epoch_end, 1000);
}

TEST(Stream, SkippingIsTakingWindows) {
  for (uint64_t number = 0; number < kTrials; ++number) {
    SCOPED_TRACE(absl::StrCat("trial ", number));
    Trial trial(number);
    Stream stepper = trial.Open(), jumper = trial.Open();
    std::vector<TokenSpan> spans;
    for (int i = 0; i < 10; ++i) {
      const uint64_t count = trial.dice.Below(12);
      for (uint64_t k = 0; k < count; ++k) ASSERT_THAT(stepper.Next(&spans), IsOk());
      ASSERT_THAT(jumper.Skip(count), IsOk());
      ASSERT_EQ(jumper.cursor(), stepper.cursor());
    }
  }
}

TEST(Stream, WalkReadsNoTokens) {
  Trial trial(7);
  Stream stream = trial.Open();
  std::vector<TokenSpan> spans;
  ASSERT_THAT(stream.Skip(100), IsOk());
  for (int i = 0; i < 100; ++i) ASSERT_THAT(stream.Next(&spans), IsOk());
  EXPECT_EQ(trial.corpus.files->reads[ShardFile::kTokens], 0);
  EXPECT_EQ(trial.corpus.files->reads[ShardFile::kNames], 0);
  EXPECT_GT(trial.corpus.files->reads[ShardFile::kIndex], 0);
}

// The run: steps of 64 windows. Ranks of a world of any size, each with a stream of its own, take
// together exactly the windows of the model, each once; the world's size changes at a checkpoint in
// the middle, and nothing else does.
TEST(Stream, AnyWorldSizeReadsTheSameWindowsAlsoAfterAChange) {
  constexpr uint64_t kPerStep = 64;
  for (uint64_t world = 1; world <= 64; ++world) {
    SCOPED_TRACE(absl::StrCat("world ", world));
    Trial trial(1000 + world);
    const auto schedule = BatchSchedule::Create({{kPerStep, std::nullopt}}, trial.seq_len);
    ASSERT_THAT(schedule, IsOk());
    std::string checkpoint = EncodeCursor(trial.Open().cursor());
    for (uint64_t step = 0; step < 2; ++step) {
      const uint64_t ranks = step == 0 ? world : 1 + (world * 7) % 64;
      const StepWindows windows = *schedule->WindowsOfStep(step);
      std::map<uint64_t, int> taken;
      std::string end;
      for (uint64_t rank = 0; rank < ranks; ++rank) {
        Stream stream = trial.Open();
        const StreamCursor cursor = *DecodeCursor(AsBytes(checkpoint));
        ASSERT_THAT(CheckCursorAtStep(*schedule, step, cursor), IsOk());
        ASSERT_THAT(stream.Seek(cursor), IsOk());
        for (uint64_t window = windows.begin; window < windows.end; ++window) {
          if (RankOfWindow(windows, window, ranks) == rank) {
            ASSERT_NO_FATAL_FAILURE(trial.ExpectNext(stream));
            ++taken[window];
          } else {
            ASSERT_THAT(stream.Skip(1), IsOk());
          }
        }
        if (rank == 0) end = EncodeCursor(stream.cursor());
        ASSERT_EQ(EncodeCursor(stream.cursor()), end) << "ranks end at different places";
      }
      ASSERT_EQ(taken.size(), kPerStep);
      for (const auto& [window, times] : taken) EXPECT_EQ(times, 1) << window;
      checkpoint = end;
    }
  }
}

TEST(Stream, EpochOfOneSourceEndsWithoutThatOfAnother) {
  // Source "a" is one document of one token, "b" has many.
  std::vector<Tokens> many(500, Tokens(9, 5));
  std::vector<MemorySource> sources = {{"a", {{Tokens{1}}}, 1}, {"b", {many}, 9}};
  const MemoryCorpus corpus = MakeMemoryCorpus(sources);
  Model model(sources, 3);
  auto stream = Stream::Open(corpus.reader, 3, 16);
  ASSERT_THAT(stream, IsOk());
  std::vector<TokenSpan> spans;
  for (uint64_t m = 0; m < 200; ++m) {
    ASSERT_THAT(stream->Next(&spans), IsOk());
    ASSERT_EQ(Flat(*stream, spans), Flat(model.Window(m, 17)));
    if (m % 10 == 0) {
      auto resumed = Stream::Open(corpus.reader, 3, 16);
      ASSERT_THAT(resumed->Seek(stream->cursor()), IsOk());
    }
  }
  EXPECT_GT(stream->cursor().sources[0].epoch, 10);
  EXPECT_EQ(stream->cursor().sources[1].epoch, 0);
}

TEST(Stream, EveryDocumentOnceAnEpoch) {
  Trial trial(11);
  Stream stream = trial.Open();
  std::map<std::array<uint64_t, 4>, int> seen;  // source, epoch, shard, document
  std::vector<TokenSpan> spans;
  std::vector<SourcePosition> counted(trial.sources.size());
  while (stream.cursor().sources[0].epoch < 3) {
    ASSERT_THAT(stream.Next(&spans), IsOk());
    for (const TokenSpan& span : spans) {
      if (span.begin != 0) continue;
      SourcePosition& p = counted[span.source];
      EXPECT_EQ((++seen[{span.source, p.epoch, span.shard, span.document}]), 1);
      if (++p.documents == trial.corpus.manifest->sources[span.source].documents) {
        p = {p.epoch + 1, 0};
      }
    }
  }
  uint64_t of_first = 0;
  for (const auto& [key, count] : seen) of_first += key[0] == 0 && key[1] < 3;
  EXPECT_EQ(of_first, 3 * trial.corpus.manifest->sources[0].documents);
}

TEST(Stream, SharesOfTokensAreThoseAskedFor) {
  // Documents of very different lengths; "a" asks for a quarter of the tokens.
  std::vector<MemorySource> sources = {{"a", {std::vector<Tokens>(50, Tokens(4, 1))}, 1},
                                       {"b", {std::vector<Tokens>(50, Tokens(199, 2))}, 3}};
  const MemoryCorpus corpus = MakeMemoryCorpus(sources);
  auto stream = Stream::Open(corpus.reader, 42, 99);
  ASSERT_THAT(stream, IsOk());
  std::array<double, 2> tokens = {};
  std::vector<TokenSpan> spans;
  for (int i = 0; i < 20000; ++i) {
    ASSERT_THAT(stream->Next(&spans), IsOk());
    for (const TokenSpan& span : spans) tokens[span.source] += span.end - span.begin;
  }
  EXPECT_NEAR(tokens[0] / (tokens[0] + tokens[1]), 0.25, 0.01);
}

TEST(Stream, WeightsAreExactIntegers) {
  // By default a source's share is its tokens, and its weight then goes with its documents.
  std::vector<MemorySource> sources = {{"a", {std::vector<Tokens>(3, Tokens(7, 1))}, {}},
                                       {"b", {}, {}},
                                       {"c", {std::vector<Tokens>(1, Tokens(39, 1))}, {}}};
  const MemoryCorpus corpus = MakeMemoryCorpus(sources);  // 24 and 40 tokens
  // floor(2^63 * 24 / 64) = 3 * 2^60; times 3 / 24 = 3 * 2^57. floor(2^63 * 40 / 64) = 5 * 2^60; /
  // 40 = 2^57.
  EXPECT_EQ(MixWeights(*corpus.manifest), (std::vector<uint64_t>{3ull << 57, 0, 1ull << 57}));
}

TEST(Stream, OtherSeedsAndLengthsAreOtherStreams) {
  Trial trial(5);
  const Stream stream = trial.Open();
  const auto other_seed = Stream::Open(trial.corpus.reader, trial.seed + 1, trial.seq_len);
  const auto other_length = Stream::Open(trial.corpus.reader, trial.seed, trial.seq_len + 1);
  Stream moved = trial.Open();
  EXPECT_THAT(moved.Seek(other_seed->cursor()), StatusIs(kInvalid, HasSubstr("seed")));
  EXPECT_THAT(moved.Seek(other_length->cursor()), StatusIs(kInvalid, HasSubstr("sequence length")));
  EXPECT_THAT(Stream::Open(trial.corpus.reader, 1, 0), StatusIs(kInvalid));
  EXPECT_THAT(Stream::Open(trial.corpus.reader, 1, UINT64_MAX), StatusIs(kInvalid));
}

TEST(Stream, CorpusWithoutDocumentsHasNoStream) {
  const MemoryCorpus corpus = MakeMemoryCorpus({{"a", {}, 5}, {"b", {{Tokens{1}}}, 0}});
  EXPECT_THAT(Stream::Open(corpus.reader, 1, 8),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no source")));
}

// Each field of a good cursor changed by itself, and pairs of cursors mixed: Seek refuses all that
// is not a place of the stream, and stays where it is.
TEST(Stream, SeekRefusesDamagedCursors) {
  for (uint64_t number = 0; number < kTrials; ++number) {
    SCOPED_TRACE(absl::StrCat("trial ", number));
    Trial trial(number);
    Stream stream = trial.Open();
    ASSERT_THAT(stream.Skip(5 + trial.dice.Below(20)), IsOk());
    const StreamCursor good = stream.cursor();
    Stream target = trial.Open();
    const auto refuse = [&](const char* what, const StreamCursor& bad) {
      if (bad == good) return;
      EXPECT_THAT(target.Seek(bad), StatusIs(kDataLoss)) << what;
      EXPECT_EQ(target.window(), 0);
    };
    StreamCursor bad = good;
    bad.window += 1;
    refuse("window", bad);
    bad = good;
    bad.draws -= 1;
    refuse("draws", bad);
    bad = good;
    bad.sources.pop_back();
    refuse("a source less", bad);
    for (size_t i = 0; i < good.sources.size(); ++i) {
      bad = good;
      bad.sources[i].epoch += 1;
      refuse("an epoch skipped", bad);
      bad = good;
      bad.sources[i].documents += 1;
      refuse("a document skipped", bad);
      bad = good;
      bad.sources[i].epoch += UINT64_MAX / 2;
      refuse("an absurd epoch", bad);
      // The end of an epoch in the form that is not canonical.
      if (good.sources[i].epoch > 0 && good.sources[i].documents == 0) {
        bad = good;
        bad.sources[i] = {good.sources[i].epoch - 1, trial.corpus.manifest->sources[i].documents};
        refuse("end of an epoch written as the old one's", bad);
      }
    }
    bad = good;
    bad.carry.reset();
    refuse("carry-over lost", bad);
    if (good.carry) {
      for (int delta : {-1, 1}) {
        bad = good;
        bad.carry->token += delta;
        refuse("carry-over moved", bad);
      }
      bad = good;
      bad.carry->document += 1;
      refuse("another document carried over", bad);
      bad = good;
      bad.carry->shard += 1;
      refuse("another shard carried over", bad);
      bad = good;
      bad.carry->source += 1;
      refuse("another source carried over", bad);
    } else {
      bad = good;
      bad.carry = CarryOver{0, 0, 0, 1};
      refuse("carry-over out of nothing", bad);
    }
    ASSERT_THAT(stream.Skip(7), IsOk());
    bad = stream.cursor();
    bad.sources = good.sources;
    bad.draws = good.draws;
    refuse("two cursors mixed", bad);
    EXPECT_THAT(target.Seek(good), IsOk());
  }
}

TEST(Stream, FailureLeavesItWhereItWas) {
  int failures = 0;
  for (uint64_t number = 0; number < 100; ++number) {
    SCOPED_TRACE(absl::StrCat("trial ", number));
    Trial trial(number);
    Stream stream = trial.Open();
    while (stream.window() < 40) {
      trial.corpus.files->reads_left = static_cast<int>(trial.dice.Below(3));
      std::vector<TokenSpan> spans;
      const StreamCursor before = stream.cursor();
      const absl::Status status = stream.Next(&spans);
      trial.corpus.files->reads_left.reset();
      if (status.ok()) {
        EXPECT_EQ(Flat(stream, spans), Flat(trial.model.Window(before.window, trial.seq_len + 1)));
        continue;
      }
      ++failures;
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
      ASSERT_EQ(stream.cursor(), before);
      EXPECT_TRUE(spans.empty());
      ASSERT_NO_FATAL_FAILURE(trial.ExpectNext(stream));
    }
  }
  EXPECT_GT(failures, 500);
}

TEST(Stream, ReadTokensRefusesForeignSpans) {
  Trial trial(3);
  Stream stream = trial.Open();
  std::vector<TokenSpan> spans;
  ASSERT_THAT(stream.Next(&spans), IsOk());
  std::vector<int32_t> out(stream.window_tokens());
  const auto refuse = [&](auto change) {
    std::vector<TokenSpan> bad = spans;
    change(bad[0]);
    EXPECT_THAT(stream.ReadTokens(bad, out), StatusIs(kInvalid));
  };
  refuse([](TokenSpan& s) { s.source = 99; });
  refuse([](TokenSpan& s) { s.shard = 99; });
  refuse([](TokenSpan& s) { s.shard_begin = UINT32_MAX; });
  refuse([](TokenSpan& s) { s.end = s.begin + 1000000; });
  refuse([](TokenSpan& s) { s.end += 1; });
  out.push_back(0);
  EXPECT_THAT(stream.ReadTokens(spans, out), StatusIs(kInvalid));
}

}  // namespace
}  // namespace lockstep::engine
