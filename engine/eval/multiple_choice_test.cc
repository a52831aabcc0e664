// SPDX-License-Identifier: Apache-2.0
//
// Both formulations on rigged losses: what is asked of the model token by token, what wins, and how
// questions are put into windows.
#include "engine/eval/multiple_choice.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/eval/testing/rigged_source.h"
#include "engine/tokenizer/testing/tokenizers.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using testing::RiggedSource;

const Question kSky = {.text = "What colour is the sky?",
                       .choices = {"Red", "Blue", "Green and quite dark"},
                       .answer = 1};

// What a window says up to a target, without the separator that it begins with.
std::string Said(const Tokenizer& tokenizer, std::span<const int32_t> context, int32_t target) {
  std::vector<int32_t> ids(context.begin() + 1, context.end());
  ids.push_back(target);
  return *tokenizer.Decode(ids);
}

TEST(MultipleChoice, Prompts) {
  const Prompt letters = LetterPrompt(kSky);
  EXPECT_EQ(letters.context,
            "Question: What colour is the sky?\n A. Red\n B. Blue\n C. Green and quite dark\n"
            "Answer:");
  EXPECT_EQ(letters.continuations, (std::vector<std::string>{" A", " B", " C"}));
  const Prompt completions = CompletionPrompt(kSky);
  EXPECT_EQ(completions.context, "Question: What colour is the sky?\nAnswer:");
  EXPECT_EQ(completions.continuations,
            (std::vector<std::string>{" Red", " Blue", " Green and quite dark"}));
}

// That encoding context and continuation apart gives the tokens of the whole.
TEST(MultipleChoice, TokensAreThoseOfTheWhole) {
  const auto tokenizer = testing::SmallTokenizer();
  std::vector<std::string> choices = testing::TrickyTexts();
  choices.insert(choices.end(),
                 {"(a)", " 5", "5", "'s", "\nx", "\r\n", ":", "::", "\u00e9t\u00e9"});
  for (const std::string& choice : choices) {
    std::vector<int32_t> apart = testing::Encode(*tokenizer, "Question: q\nAnswer:");
    tokenizer->Encode(" " + choice, &apart);
    EXPECT_EQ(apart, testing::Encode(*tokenizer, "Question: q\nAnswer: " + choice)) << choice;
  }
}

// A loss of one for each token of a continuation, and what else the test wants.
TEST(MultipleChoice, ScoresAreSumsOverTheContinuationsTokens) {
  const auto tokenizer = testing::SmallTokenizer();
  RiggedSource model(256, 2, [&](std::span<const int32_t> context, int32_t target) {
    EXPECT_EQ(context[0], tokenizer->end_of_text());
    const std::string said = Said(*tokenizer, context, target);
    EXPECT_TRUE(absl::StrContains(said, "\nAnswer: ")) << said;
    return absl::StrContains(said, "Answer: Bl") ? 10.0f : 1.0f;
  });
  const auto scores = *ScoreQuestions(model, *tokenizer, {kSky}, {});
  ASSERT_EQ(scores.size(), 1u);
  const auto tokens = [&](const std::string& text) {
    return static_cast<double>(testing::Encode(*tokenizer, text).size());
  };
  EXPECT_EQ(scores[0].letters, (std::vector<double>{tokens(" A"), tokens(" B"), tokens(" C")}));
  ASSERT_EQ(scores[0].completions.size(), 3u);
  EXPECT_EQ(scores[0].completions[0], tokens(" Red"));
  EXPECT_GT(scores[0].completions[1], 10.0);
  EXPECT_EQ(scores[0].completions[2], tokens(" Green and quite dark"));
  EXPECT_FALSE(scores[0].cut);
  EXPECT_FALSE(scores[0].left_out);
}

// A model that knows the answers, as letters or as texts, is told to be right.
TEST(MultipleChoice, FindsWhatARiggedModelKnows) {
  const auto tokenizer = testing::SmallTokenizer();
  std::vector<Question> questions;
  for (int q = 0; q < 40; ++q) {
    Question question = {.text = absl::StrCat("Which is number ", q, "?"),
                         .choices = {},
                         .answer = static_cast<size_t>(q * q % 4)};
    for (int c = 0; c < 4; ++c) {
      const std::string x(1 + (q + c) % 5, 'x');
      question.choices.push_back(absl::StrCat(c == q * q % 4 ? "yes " : "no ", x, q));
    }
    questions.push_back(question);
  }
  const auto right = [&](const std::string& said, bool letters) {
    const size_t at = said.rfind("\nAnswer: ") + 9;
    if (absl::StartsWith(said.substr(at), "yes")) return !letters;
    const size_t answer = said.find(". yes");  // "\n B. yes"
    return letters && answer != std::string::npos && said[answer - 1] == said[at];
  };
  for (const bool letters : {true, false}) {
    RiggedSource model(128, 4, [&](std::span<const int32_t> context, int32_t target) {
      return right(Said(*tokenizer, context, target), letters) ? 0.0f : 2.0f;
    });
    int64_t done = 0;
    const EvalHooks hooks = {.interrupted = {}, .done = [&](int64_t n) { done += n; }};
    const auto scores = *ScoreQuestions(model, *tokenizer, questions, hooks);
    EXPECT_EQ(done, ContinuationsOf(questions));
    const MultipleChoiceResult result = Tally(questions, scores);
    EXPECT_EQ(result.questions, 40);
    EXPECT_EQ(letters ? result.letters_right : result.completions_right, 40);
    EXPECT_LT(letters ? result.completions_right : result.letters_right, 40);
    EXPECT_EQ(result.BestAccuracy(), 1.0);
    EXPECT_EQ(result.majority, 20);  // squares end 0 or 1 in base 4
  }
}

TEST(MultipleChoice, AQuestionsWindowsShareABatchWithOthersOfTheirLength) {
  const auto tokenizer = testing::SmallTokenizer();
  std::vector<Question> questions;
  for (int q = 0; q < 9; ++q) {
    questions.push_back(kSky);
    if (q % 3 == 0) questions.back().text += std::string(60, '?') + " 1 2 3 4 5 6 7 8 9 0 1 2 3 4";
  }
  RiggedSource model(128, 8, [](std::span<const int32_t>, int32_t) { return 1.0f; });
  ASSERT_TRUE(ScoreQuestions(model, *tokenizer, questions, {}).ok());
  int64_t windows = 0;
  int64_t length = 0;
  for (size_t b = 0; b < model.batches.size(); ++b) {
    const RiggedSource::Batch& batch = model.batches[b];
    EXPECT_GE(batch.length, length);
    length = batch.length;
    EXPECT_TRUE(length == 32 || length == 64 || length == 128) << length;
    EXPECT_EQ(batch.windows() % 3, 0);  // whole questions
    const int64_t windows_max = 8 * 128 / length;
    EXPECT_LE(batch.windows(), windows_max);
    if (b + 1 < model.batches.size() && model.batches[b + 1].length == length) {
      EXPECT_GT(batch.windows() + 3, windows_max);
    }
    windows += batch.windows();
  }
  EXPECT_EQ(windows, ContinuationsOf(questions));
}

TEST(MultipleChoice, LongContextsAreCutAndLongChoicesLeftOut) {
  const auto tokenizer = testing::SmallTokenizer();
  Question long_context = kSky;
  long_context.text = std::string(400, 'q') + "+-*/ end?";
  Question long_choice = kSky;
  long_choice.choices[0].clear();
  for (int i = 0; i < 40; ++i) absl::StrAppend(&long_choice.choices[0], i, " ");
  RiggedSource model(32, 1, [&](std::span<const int32_t> context, int32_t target) {
    EXPECT_LE(context.size(), 32u);
    EXPECT_TRUE(absl::StrContains(Said(*tokenizer, context, target), "Answer:"));
    return 1.0f;
  });
  const std::vector<Question> questions = {long_choice, long_context};
  const auto scores = *ScoreQuestions(model, *tokenizer, questions, {});
  EXPECT_TRUE(scores[0].left_out);
  EXPECT_TRUE(scores[0].letters.empty());
  EXPECT_TRUE(scores[1].cut);
  EXPECT_EQ(scores[1].completions.size(), 3u);
  const MultipleChoiceResult result = Tally(questions, scores);
  EXPECT_EQ(result.questions, 1);
  EXPECT_EQ(result.left_out, 1);
  EXPECT_EQ(result.cut, 1);
}

TEST(MultipleChoice, TallyByLetterAndByByte) {
  // The third choice is least by byte: 4 / 20 < 1 / 3 < 2 / 4; the first one by the sum.
  const QuestionScores scores = {
      .letters = {3, 1, 2}, .completions = {1, 2, 4}, .cut = false, .left_out = false};
  Question third = kSky;
  third.answer = 2;
  const MultipleChoiceResult result = Tally({kSky, third, kSky}, {scores, scores, scores});
  EXPECT_EQ(result.letters_right, 2);
  EXPECT_EQ(result.completions_right, 1);
  EXPECT_EQ(result.majority, 2);
  EXPECT_EQ(result.BestAccuracy(), 2.0 / 3);
  EXPECT_EQ(result.MajorityAccuracy(), 2.0 / 3);
}

TEST(MultipleChoice, EqualScoresAndNaNAreDecidedAlike) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  Question first = kSky;
  first.answer = 0;
  first.choices = {"aa", "bb", "cc"};
  const auto right = [&](std::vector<double> letters) {
    const QuestionScores scores = {
        .letters = letters, .completions = letters, .cut = false, .left_out = false};
    const MultipleChoiceResult result = Tally({first}, {scores});
    EXPECT_EQ(result.letters_right, result.completions_right);
    return result.letters_right == 1;
  };
  EXPECT_TRUE(right({1, 1, 1}));
  EXPECT_FALSE(right({kNaN, 1, 1}));
  EXPECT_TRUE(right({1, kNaN, 2}));
  EXPECT_TRUE(right({kNaN, kNaN, kNaN}));
}

}  // namespace
}  // namespace lockstep::engine
