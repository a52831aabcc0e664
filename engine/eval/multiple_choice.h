// SPDX-License-Identifier: Apache-2.0
//
// Multiple choice in both formulations: the option's letter, and the option's text as a completion.
// A small model cannot use letters yet and a large one does better with them, so both are asked and
// the better one is the model's result. Prompts and rules: docs/evaluation.md.
// Source of the two formulations: Gu et al., "OLMES: A Standard for Language Model Evaluations".
#ifndef LOCKSTEP_ENGINE_EVAL_MULTIPLE_CHOICE_H_
#define LOCKSTEP_ENGINE_EVAL_MULTIPLE_CHOICE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/eval/json_lines.h"
#include "engine/eval/loss_source.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::engine {

// What is asked, and how the model may go on.
struct Prompt {
  std::string context;
  std::vector<std::string> continuations;  // one a choice
};
Prompt LetterPrompt(const Question& question);      // "... A. first\n B. second\nAnswer:", " A"
Prompt CompletionPrompt(const Question& question);  // "...\nAnswer:", " first"

// The cross-entropy of the continuation's tokens after the context, added up, in nats; by choice.
struct QuestionScores {
  std::vector<double> letters;
  std::vector<double> completions;
  bool cut = false;  // the context's beginning did not fit into a window, in either formulation
  bool left_out = false;  // a choice alone is longer than a window: there are no scores
};

// In the order of the questions. Every continuation is computed in a window of its own that begins
// with a separator. The windows of a question are in one batch, so that they are quantised alike;
// questions whose windows have about the same length share batches of as many tokens as in
// training. hooks.done counts continuations, ContinuationsOf in all.
absl::StatusOr<std::vector<QuestionScores>> ScoreQuestions(LossSource& model,
                                                           const Tokenizer& tokenizer,
                                                           const std::vector<Question>& questions,
                                                           const EvalHooks& hooks);
int64_t ContinuationsOf(const std::vector<Question>& questions);

// Counts of questions. All but left_out are of those with scores.
struct MultipleChoiceResult {
  int64_t questions = 0;
  int64_t letters_right = 0;      // of the least cross-entropy
  int64_t completions_right = 0;  // of the least cross-entropy by byte of the choice
  int64_t majority = 0;           // whose answer is the letter that is most often right
  int64_t cut = 0;
  int64_t left_out = 0;

  // Of a result with questions.
  double LetterAccuracy() const { return Share(letters_right); }
  double CompletionAccuracy() const { return Share(completions_right); }
  double BestAccuracy() const { return Share(std::max(letters_right, completions_right)); }
  double MajorityAccuracy() const { return Share(majority); }
  // majority then counts each file's most frequent letter.
  void Add(const MultipleChoiceResult& other);

 private:
  double Share(int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(questions);
  }
};

// Of equal scores the first choice's counts as the least; one that is no number is never the least.
MultipleChoiceResult Tally(const std::vector<Question>& questions,
                           const std::vector<QuestionScores>& scores);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_EVAL_MULTIPLE_CHOICE_H_
