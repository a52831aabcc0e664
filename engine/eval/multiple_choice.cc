// SPDX-License-Identifier: Apache-2.0
//
// Prompts, windows of like length in batches, and the count of what was right.
#include "engine/eval/multiple_choice.h"

#include <array>
#include <limits>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kShortestWindow = 32;

std::string Letter(size_t choice) { return std::string(1, static_cast<char>('A' + choice)); }

// A continuation after its context: tokens[i] is the input whose target is tokens[i + 1].
struct Sequence {
  std::vector<int32_t> tokens;
  int64_t scored = 0;  // the last so many are the continuation's

  int64_t inputs() const { return static_cast<int64_t>(tokens.size()) - 1; }
};

// The windows of one question in one formulation.
struct Group {
  std::vector<Sequence> sequences;
  int64_t length = 0;           // of its windows
  std::vector<double>* scores;  // where its results go
};

// 32, 64, ... or T: so that short questions do not pay for long windows.
int64_t WindowLength(int64_t inputs, int64_t seq_len) {
  int64_t length = kShortestWindow;
  while (length < inputs) length *= 2;
  return std::min(length, seq_len);
}

class Scorer {
 public:
  Scorer(LossSource& model, const Tokenizer& tokenizer, const EvalHooks& hooks)
      : model_(model), tokenizer_(tokenizer), hooks_(hooks) {}

  void Add(const Question& question, QuestionScores* scores) {
    std::vector<Group> groups;
    for (const bool letters : {true, false}) {
      groups.push_back(
          MakeGroup(letters ? LetterPrompt(question) : CompletionPrompt(question), scores));
      groups.back().scores = letters ? &scores->letters : &scores->completions;
    }
    if (scores->left_out) {
      hooks_.Done(static_cast<int64_t>(2 * question.choices.size()));
      return;
    }
    for (Group& group : groups) groups_.push_back(std::move(group));
  }

  absl::Status Run() {
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const Group& a, const Group& b) { return a.length < b.length; });
    for (size_t begin = 0; begin < groups_.size();) {
      const int64_t length = groups_[begin].length;
      const int64_t windows_max = model_.batch_windows() * model_.seq_len() / length;
      auto windows = static_cast<int64_t>(groups_[begin].sequences.size());
      size_t end = begin + 1;
      while (end < groups_.size() && groups_[end].length == length) {
        windows += static_cast<int64_t>(groups_[end].sequences.size());
        if (windows > windows_max) break;
        ++end;
      }
      LOCKSTEP_RETURN_IF_ERROR(Batch(std::span(groups_).subspan(begin, end - begin), length));
      begin = end;
    }
    return absl::OkStatus();
  }

 private:
  Group MakeGroup(const Prompt& prompt, QuestionScores* scores) {
    Group group;
    std::vector<int32_t> context = {tokenizer_.end_of_text()};
    tokenizer_.Encode(prompt.context, &context);
    int64_t inputs_max = 0;
    for (const std::string& continuation : prompt.continuations) {
      Sequence sequence = {.tokens = context};
      // Encoded alone it has the tokens that it has in the whole: no piece of the pre-tokenizer
      // goes across the blank after "Answer:".
      tokenizer_.Encode(continuation, &sequence.tokens);
      sequence.scored = static_cast<int64_t>(sequence.tokens.size() - context.size());
      const int64_t excess = sequence.inputs() - model_.seq_len();
      if (sequence.scored > model_.seq_len()) scores->left_out = true;
      if (excess > 0) {
        scores->cut = true;
        sequence.tokens.erase(sequence.tokens.begin(), sequence.tokens.begin() + excess);
      }
      inputs_max = std::max(inputs_max, sequence.inputs());
      group.sequences.push_back(std::move(sequence));
    }
    group.length = WindowLength(inputs_max, model_.seq_len());
    return group;
  }

  absl::Status Batch(std::span<Group> groups, int64_t length) {
    LOCKSTEP_RETURN_IF_ERROR(hooks_.CheckInterrupted());
    std::vector<int32_t> inputs;
    std::vector<int32_t> targets;
    for (const Group& group : groups) {
      for (const Sequence& sequence : group.sequences) {
        AddWindow(sequence, length, &inputs, &targets);
      }
    }
    std::vector<float> losses(inputs.size());
    LOCKSTEP_RETURN_IF_ERROR(model_.Losses(length, inputs, targets, losses));
    size_t window = 0;
    for (const Group& group : groups) {
      for (const Sequence& sequence : group.sequences) {
        const float* const end = losses.data() + window * length + sequence.inputs();
        double nats = 0;
        for (const float* loss = end - sequence.scored; loss < end; ++loss) nats += *loss;
        group.scores->push_back(nats);
        ++window;
      }
    }
    hooks_.Done(static_cast<int64_t>(window));
    return absl::OkStatus();
  }

  void AddWindow(const Sequence& sequence, int64_t length, std::vector<int32_t>* inputs,
                 std::vector<int32_t>* targets) const {
    const int64_t count = sequence.inputs();
    inputs->insert(inputs->end(), sequence.tokens.begin(), sequence.tokens.end() - 1);
    inputs->insert(inputs->end(), length - count, tokenizer_.end_of_text());
    targets->insert(targets->end(), count - sequence.scored, kernels::kIgnoredTarget);
    targets->insert(targets->end(), sequence.tokens.end() - sequence.scored, sequence.tokens.end());
    targets->insert(targets->end(), length - count, kernels::kIgnoredTarget);
  }

  LossSource& model_;
  const Tokenizer& tokenizer_;
  const EvalHooks& hooks_;
  std::vector<Group> groups_;
};

size_t Least(const std::vector<double>& scores) {
  size_t least = 0;
  double best = std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < scores.size(); ++c) {
    if (scores[c] < best) {
      best = scores[c];
      least = c;
    }
  }
  return least;
}

std::vector<double> ByByte(const std::vector<double>& scores,
                           const std::vector<std::string>& choices) {
  std::vector<double> by_byte;
  for (size_t c = 0; c < scores.size(); ++c) {
    by_byte.push_back(scores[c] / static_cast<double>(choices[c].size()));
  }
  return by_byte;
}

}  // namespace

Prompt LetterPrompt(const Question& question) {
  Prompt prompt;
  prompt.context = absl::StrCat("Question: ", question.text, "\n");
  for (size_t c = 0; c < question.choices.size(); ++c) {
    // A blank before the letter here too, so that it is the same token as in the answer.
    absl::StrAppend(&prompt.context, " ", Letter(c), ". ", question.choices[c], "\n");
    prompt.continuations.push_back(" " + Letter(c));
  }
  prompt.context += "Answer:";
  return prompt;
}

Prompt CompletionPrompt(const Question& question) {
  Prompt prompt;
  prompt.context = absl::StrCat("Question: ", question.text, "\nAnswer:");
  for (const std::string& choice : question.choices) prompt.continuations.push_back(" " + choice);
  return prompt;
}

absl::StatusOr<std::vector<QuestionScores>> ScoreQuestions(LossSource& model,
                                                           const Tokenizer& tokenizer,
                                                           const std::vector<Question>& questions,
                                                           const EvalHooks& hooks) {
  std::vector<QuestionScores> scores(questions.size());
  Scorer scorer(model, tokenizer, hooks);
  for (size_t q = 0; q < questions.size(); ++q) scorer.Add(questions[q], &scores[q]);
  LOCKSTEP_RETURN_IF_ERROR(scorer.Run());
  return scores;
}

int64_t ContinuationsOf(const std::vector<Question>& questions) {
  int64_t count = 0;
  for (const Question& question : questions) {
    count += static_cast<int64_t>(2 * question.choices.size());
  }
  return count;
}

void MultipleChoiceResult::Add(const MultipleChoiceResult& other) {
  questions += other.questions;
  letters_right += other.letters_right;
  completions_right += other.completions_right;
  majority += other.majority;
  cut += other.cut;
  left_out += other.left_out;
}

MultipleChoiceResult Tally(const std::vector<Question>& questions,
                           const std::vector<QuestionScores>& scores) {
  MultipleChoiceResult result;
  std::array<int64_t, kChoicesMax> answers{};
  for (size_t q = 0; q < questions.size(); ++q) {
    const Question& question = questions[q];
    if (scores[q].left_out) {
      ++result.left_out;
      continue;
    }
    ++result.questions;
    ++answers[question.answer];
    result.cut += scores[q].cut ? 1 : 0;
    result.letters_right += Least(scores[q].letters) == question.answer ? 1 : 0;
    result.completions_right +=
        Least(ByByte(scores[q].completions, question.choices)) == question.answer ? 1 : 0;
  }
  result.majority = *std::max_element(answers.begin(), answers.end());
  return result;
}

}  // namespace lockstep::engine
