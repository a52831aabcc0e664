// SPDX-License-Identifier: Apache-2.0
//
// The stream against its model (testing/stream_model.h), window by window, over random corpora and
// resume points; and what it refuses.
#include "engine/data/stream.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "engine/data/testing/memory_corpus.h"
#include "engine/data/testing/stream_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using testing::Flat;
using ::testing::HasSubstr;
using testing::MakeMemoryCorpus;
using testing::MemoryCorpus;
using testing::MemorySource;
using testing::Model;
using testing::Tokens;
using testing::Trial;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

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

TEST(Stream, RefusesCursorsOfOtherStreamsAndSaysWhatDiffers) {
  Trial trial(5), other_corpus(6);
  const auto other_seed = Stream::Open(trial.corpus.reader, trial.seed + 1, trial.seq_len);
  const auto other_length = Stream::Open(trial.corpus.reader, trial.seed, trial.seq_len + 1);
  Stream moved = trial.Open();
  EXPECT_THAT(moved.Seek(other_seed->cursor()),
              StatusIs(kInvalid, HasSubstr(absl::StrCat("seed: expected ", trial.seed, ", found ",
                                                        trial.seed + 1))));
  EXPECT_THAT(moved.Seek(other_length->cursor()), StatusIs(kInvalid, HasSubstr("sequence length")));
  EXPECT_THAT(moved.Seek(other_corpus.Open().cursor()),
              StatusIs(kInvalid, HasSubstr(trial.corpus.reader->digest().ToHex())));
  EXPECT_THAT(Stream::Open(trial.corpus.reader, 1, 0), StatusIs(kInvalid));
  EXPECT_THAT(Stream::Open(trial.corpus.reader, 1, UINT64_MAX), StatusIs(kInvalid));
}

// A corpus of one source, one shard, one document: each epoch is that document.
TEST(Stream, OneDocumentIsReadOverAndOver) {
  const MemoryCorpus corpus = MakeMemoryCorpus({{"only", {{Tokens{7, 8, 9}}}, {}}});
  auto stream = Stream::Open(corpus.reader, 1, 5);
  ASSERT_THAT(stream, IsOk());
  std::vector<int32_t> flat(6);
  std::vector<TokenSpan> spans;
  ASSERT_THAT(stream->Next(&spans), IsOk());
  ASSERT_THAT(stream->ReadTokens(spans, flat), IsOk());
  EXPECT_EQ(flat, (std::vector<int32_t>{7, 8, 9, 0, 7, 8}));
  EXPECT_EQ(stream->cursor().sources[0], (SourcePosition{2, 0}));
  EXPECT_EQ(stream->cursor().carry, (CarryOver{0, 0, 0, 2}));
  ASSERT_THAT(stream->Next(&spans), IsOk());
  ASSERT_THAT(stream->ReadTokens(spans, flat), IsOk());
  EXPECT_EQ(flat, (std::vector<int32_t>{9, 0, 7, 8, 9, 0}));
  EXPECT_EQ(stream->cursor().carry, std::nullopt);
}

// Documents without a token of their own: the separator alone.
TEST(Stream, DocumentsOfOneToken) {
  const MemoryCorpus corpus = MakeMemoryCorpus({{"empty", {std::vector<Tokens>(3)}, {}}});
  auto stream = Stream::Open(corpus.reader, 1, 6);
  ASSERT_THAT(stream, IsOk());
  std::vector<int32_t> flat(7, -1);
  std::vector<TokenSpan> spans;
  ASSERT_THAT(stream->Next(&spans), IsOk());
  EXPECT_EQ(spans.size(), 7);
  ASSERT_THAT(stream->ReadTokens(spans, flat), IsOk());
  EXPECT_EQ(flat, std::vector<int32_t>(7, 0));
  EXPECT_EQ(stream->cursor().sources[0], (SourcePosition{2, 1}));
}

TEST(Stream, DocumentLongerThanManyWindowsGoesThroughThemInOrder) {
  Tokens document;
  for (int i = 1; i < 100; ++i) document.push_back(i);
  const MemoryCorpus corpus = MakeMemoryCorpus({{"long", {{document}}, {}}});
  auto stream = Stream::Open(corpus.reader, 1, 9);
  ASSERT_THAT(stream, IsOk());
  std::vector<TokenSpan> spans;
  for (uint32_t window = 0; window < 10; ++window) {
    ASSERT_THAT(stream->Next(&spans), IsOk());
    EXPECT_EQ(spans,
              (std::vector<TokenSpan>{{0, 0, 0, 10 * window, 10 * window + 10, 10 * window}}));
  }
  EXPECT_EQ(stream->cursor().draws, 1);
  EXPECT_EQ(stream->cursor().carry, std::nullopt);
}

// What the stream depends on: names, shares, and the documents of each shard in their order.
// Chunks, licences and where the text came from are in the manifest, so that cursors tell such
// corpora apart, but the windows are the same.
TEST(Stream, ChunkSizeAndLicencesChangeNoWindow) {
  Trial trial(21);
  MemoryCorpus other = MakeMemoryCorpus(trial.sources, 1000, /*chunk_bytes=*/8192);
  other.manifest->sources[0].licence = "other";
  other.reader = *CorpusReader::Open(other.manifest, other.files);
  auto stream = Stream::Open(other.reader, trial.seed, trial.seq_len);
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT(stream->Seek(trial.Open().cursor()), StatusIs(kInvalid, HasSubstr("manifest")));
  for (int i = 0; i < 60; ++i) ASSERT_NO_FATAL_FAILURE(trial.ExpectNext(*stream));
}

// The same documents cut into other shards are another corpus, with another order; every epoch has
// the same documents all the same.
TEST(Stream, OtherShardsAreAnotherOrderOfTheSameDocuments) {
  std::vector<Tokens> documents;
  for (int i = 0; i < 60; ++i) documents.push_back(Tokens(3, 1 + i));  // 240 tokens an epoch
  const auto split = [&](size_t per_shard) {
    MemorySource source = {"a", {}, {}};
    for (size_t at = 0; at < documents.size(); at += per_shard) {
      source.shards.emplace_back(documents.begin() + at, documents.begin() + at + per_shard);
    }
    return MakeMemoryCorpus({source});
  };
  std::vector<std::vector<int32_t>> orders;
  for (const size_t per_shard : {60, 20, 5}) {
    const MemoryCorpus corpus = split(per_shard);
    auto stream = Stream::Open(corpus.reader, 9, 239);  // a window is an epoch
    ASSERT_THAT(stream, IsOk());
    std::vector<TokenSpan> spans;
    orders.emplace_back(240);
    ASSERT_THAT(stream->Next(&spans), IsOk());
    ASSERT_THAT(stream->ReadTokens(spans, orders.back()), IsOk());
    EXPECT_EQ(stream->cursor().sources[0], (SourcePosition{1, 0}));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  for (std::vector<int32_t>& order : orders) std::sort(order.begin(), order.end());
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_EQ(orders[1], orders[2]);
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
