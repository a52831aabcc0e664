// SPDX-License-Identifier: Apache-2.0
//
// Training: an example worked by hand, ties, overlaps, a slow learner that recounts everything, and
// equal results for every number of threads and every cut of the text.
#include "engine/tokenizer/train.h"

#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "engine/tokenizer/splitter.h"
#include "engine/tokenizer/testing/tokenizers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RandomBytes;

std::vector<std::string> Learnt(const std::vector<PieceCount>& pieces, int64_t merges) {
  std::vector<std::string> tokens = LearnTokens(pieces, merges, TrainHooks()).value();
  tokens.erase(tokens.begin(), tokens.begin() + 256);
  return tokens;
}

TEST(CountPiecesTest, CountsInByteOrder) {
  ThreadPool pool(1);
  EXPECT_THAT(CountPieces(MemorySource({"a b a", " b\xFF", "a"}), pool, TrainHooks()),
              IsOkAndHolds(ElementsAre(PieceCount{" a", 1}, PieceCount{" b", 2}, PieceCount{"a", 2},
                                       PieceCount{"\xFF", 1})));
}

// low 5, lower 2, newest 6, widest 3: the example of Sennrich et al. 2016, without end-of-word
// signs. es 9 = st 9; e < s: es. Then est 9 before lo 7 = ow 7, l < o: lo. low 7; ne 6 = ew 8?: ew
// is in lower? no: "lower" has w e.
TEST(LearnTokensTest, ByHand) {
  const std::vector<PieceCount> pieces = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  // Counts: l-o 7, o-w 7, w-e 2 + 6, e-r 2, n-e 6, e-w 6, e-s 9, s-t 9, w-i 3, i-d 3, d-e 3.
  // 1: es (9, before st: e < s). st falls to 0, es-t 9, w-e to 2, w-es 6, d-es 3.
  // 2: est (9). 3: lo (7, before ow: l < o). 4: low (7; left id 258).
  // Of count 6 then: n-e, e-w, w-est. 5: ew (e < n < w); n-e gives way to n-ew 6, w-est to
  // ew-est 6. 6: n-ew (left id n is lower than that of ew). 7: new-est (left is new).
  EXPECT_THAT(Learnt(pieces, 7), ElementsAre("es", "est", "lo", "low", "ew", "new", "newest"));
  // Then of count 3: w-i, i-d, d-est: d-est (d < i < w); i-dest; w-idest. Of count 2: low-e, e-r:
  // e-r; low-er.
  EXPECT_THAT(Learnt(pieces, 100), ElementsAre("es", "est", "lo", "low", "ew", "new", "newest",
                                               "dest", "idest", "widest", "er", "lower"));
}

TEST(LearnTokensTest, OverlappingPlacesCountAndMergeFromTheLeft) {
  // a-a stands at 4 places; they merge to aa aa a.
  EXPECT_THAT(Learnt({{"aaaaa", 1}}, 1), ElementsAre("aa"));
  // Then aa-aa and aa-a stand once each, which is not enough.
  EXPECT_THAT(Learnt({{"aaaaa", 1}}, 9), ElementsAre("aa"));
  // aa-a: a (97) is lower than aa (256) on the right.
  EXPECT_THAT(Learnt({{"aaaaa", 2}}, 9), ElementsAre("aa", "aaa", "aaaaa"));
}

TEST(LearnTokensTest, LengthIsBounded) {
  const std::vector<std::string> tokens = Learnt({{std::string(4096, 'x'), 2}}, 100);
  EXPECT_EQ(tokens.size(), 10u);
  EXPECT_EQ(tokens.back().size(), static_cast<size_t>(kTokenBytesMax));
}

// Recounts all pairs before each merge.
std::vector<std::string> SlowlyLearnt(const std::vector<PieceCount>& pieces, int64_t merges) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  std::vector<std::vector<int32_t>> words;
  for (const PieceCount& piece : pieces) {
    words.emplace_back();
    for (char c : piece.piece) words.back().push_back(static_cast<uint8_t>(c));
  }
  for (int64_t step = 0; step < merges; ++step) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (size_t w = 0; w < words.size(); ++w) {
      for (size_t i = 0; i + 1 < words[w].size(); ++i) {
        counts[{words[w][i], words[w][i + 1]}] += pieces[w].count;
      }
    }
    std::pair<int32_t, int32_t> best;
    int64_t best_count = 1;
    for (const auto& [pair, count] : counts) {
      if (count > best_count) best = pair, best_count = count;
    }
    if (best_count == 1) break;
    const auto id = static_cast<int32_t>(tokens.size());
    tokens.push_back(tokens[best.first] + tokens[best.second]);
    for (std::vector<int32_t>& word : words) {
      std::vector<int32_t> merged;
      for (size_t i = 0; i < word.size(); ++i) {
        if (i + 1 < word.size() && std::make_pair(word[i], word[i + 1]) == best) {
          merged.push_back(id);
          ++i;
        } else {
          merged.push_back(word[i]);
        }
      }
      word = merged;
    }
  }
  tokens.erase(tokens.begin(), tokens.begin() + 256);
  return tokens;
}

TEST(LearnTokensTest, AsTheSlowLearner) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    uint64_t draw = 0;
    const auto below = [&](uint64_t n) { return kernels::RandomBelow(seed, 3, draw++, n); };
    const uint64_t letters = 2 + below(4);
    std::vector<PieceCount> pieces;
    for (int i = 0; i < 60; ++i) {
      std::string word;
      for (uint64_t k = 1 + below(20); k > 0; --k) word += static_cast<char>('a' + below(letters));
      pieces.push_back({word, static_cast<int64_t>(1 + below(4))});
    }
    ASSERT_EQ(Learnt(pieces, 150), SlowlyLearnt(pieces, 150)) << "seed " << seed;
  }
  ThreadPool pool(1);
  const auto pieces = CountPieces(MemorySource(testing::TrickyTexts()), pool, TrainHooks()).value();
  EXPECT_EQ(Learnt(pieces, 200), SlowlyLearnt(pieces, 200));
}

TEST(TrainVocabularyTest, ThreadsAndCutsDoNotMatter) {
  // Enough parts for all threads; the file holds the texts that the parts hold, and is cut
  // elsewhere.
  std::vector<std::string> texts;
  std::string all;
  for (uint64_t i = 0; i < 40; ++i) {
    texts.push_back("x" + RandomBytes(i, 3000) + "\n");
    all += texts.back();
  }
  const std::string path = ::testing::TempDir() + "/train_test.txt";
  ASSERT_THAT(WriteFileDurably(path, AsBytes(all)), IsOk());
  const std::vector<std::string> special = {"<|endoftext|>", "<|pad|>"};
  ThreadPool one(1);
  const Vocabulary expected =
      TrainVocabulary(MemorySource(texts), 600, special, one, TrainHooks()).value();
  ASSERT_EQ(expected.size(), 600);
  EXPECT_EQ(expected.end_of_text, 598);
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(TrainVocabulary(MemorySource(texts), 600, special, pool, TrainHooks()).value(),
              expected)
        << threads;
    for (int64_t part_bytes : {1, 100, 5000, 1000000}) {
      const auto file = OpenTextFile(path, part_bytes).value();
      EXPECT_EQ(file->bytes(), static_cast<int64_t>(all.size()));
      EXPECT_EQ(TrainVocabulary(*file, 600, special, pool, TrainHooks()).value(), expected)
          << threads << " threads, parts of " << part_bytes;
    }
  }
}

TEST(TrainVocabularyTest, FilesAreCutWhereNoPieceGoesAcross) {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "a\n\n b\nc \r\n \td'\n's\n\xFF\ne\u00A0\n\u00A0f!\n?\n 1\n2";
  const std::string path = ::testing::TempDir() + "/cut_test.txt";
  ASSERT_THAT(WriteFileDurably(path, AsBytes(text)), IsOk());
  std::vector<std::string> expected;
  Splitter().ForEachPiece(text, [&](absl::string_view piece) { expected.emplace_back(piece); });
  const auto file = OpenTextFile(path, 1).value();
  EXPECT_GT(file->parts(), 1000);
  std::vector<std::string> pieces;
  for (int64_t part = 0; part < file->parts(); ++part) {
    ASSERT_THAT(file->Read(part,
                           [&](absl::string_view piece_text) {
                             Splitter().ForEachPiece(
                                 piece_text, [&](absl::string_view p) { pieces.emplace_back(p); });
                           }),
                IsOk());
  }
  EXPECT_EQ(pieces, expected);
}

TEST(TrainVocabularyTest, ErrorsAndInterrupts) {
  ThreadPool pool(2);
  const MemorySource source({"aa aa aa"});
  EXPECT_THAT(TrainVocabulary(source, 256, {"<|endoftext|>"}, pool, TrainHooks()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("257")));
  EXPECT_THAT(TrainVocabulary(source, 300, {}, pool, TrainHooks()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(TrainVocabulary(source, 300, {"x", "x"}, pool, TrainHooks()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token already")));
  // Fewer merges than asked for are no error: aa and " aa" are all there is.
  EXPECT_EQ(TrainVocabulary(source, 300, {"<|endoftext|>"}, pool, TrainHooks()).value().size(),
            259);
  EXPECT_THAT(OpenTextFile("/nowhere/at/all"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(OpenTextFile("/"), StatusIs(absl::StatusCode::kFailedPrecondition));
  // Stops wherever it is asked to.
  for (int limit = 0; limit < 6; ++limit) {
    std::atomic<int> asked{0};
    TrainHooks hooks;
    hooks.interrupted = [&] { return asked++ >= limit; };
    const auto result = TrainVocabulary(source, 300, {"<|endoftext|>"}, pool, hooks);
    if (asked > limit) {
      EXPECT_THAT(result, StatusIs(absl::StatusCode::kCancelled)) << limit;
    } else {
      EXPECT_THAT(result, IsOk());
    }
  }
}

TEST(TrainVocabularyTest, ProgressAddsUp) {
  ThreadPool pool(3);
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> merges{0};
  TrainHooks hooks;
  hooks.bytes_counted = [&](int64_t n) { bytes += n; };
  hooks.merges_made = [&](int64_t n) { merges += n; };
  std::vector<std::string> texts(20, "aaaa bbbb ");
  ASSERT_THAT(TrainVocabulary(MemorySource(texts), 260, {"<|endoftext|>"}, pool, hooks), IsOk());
  EXPECT_EQ(bytes, 200);
  EXPECT_EQ(merges, 3);
}

}  // namespace
}  // namespace lockstep::engine
