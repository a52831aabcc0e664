// SPDX-License-Identifier: Apache-2.0
//
// That every token of a text is predicted once, after the right ones, in windows as in training.
#include "engine/eval/held_out.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/eval/testing/rigged_source.h"
#include "engine/tokenizer/testing/tokenizers.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using testing::RiggedSource;

float LossOf(std::span<const int32_t> context, int32_t target) {
  return static_cast<float>(1 + (context.back() * 31 + target) % 97) / 16;
}

std::vector<int32_t> StreamOf(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::vector<int32_t> stream = {tokenizer.end_of_text()};
  for (const std::string& text : texts) {
    tokenizer.Encode(text, &stream);
    stream.push_back(tokenizer.end_of_text());
  }
  return stream;
}

TEST(HeldOut, EveryTokenOnceAfterTheOneBefore) {
  const auto tokenizer = testing::SmallTokenizer();
  const std::vector<std::string> texts = testing::TrickyTexts();  // the first one is empty
  const std::vector<int32_t> stream = StreamOf(*tokenizer, texts);
  double nats = 0;
  int64_t bytes = 0;
  for (size_t i = 1; i < stream.size(); ++i) nats += LossOf({&stream[i - 1], 1}, stream[i]);
  for (const std::string& text : texts) bytes += static_cast<int64_t>(text.size());
  const auto targets = static_cast<int64_t>(stream.size()) - 1;

  for (const int64_t seq_len :
       {int64_t{1}, int64_t{7}, int64_t{64}, targets - 1, targets, targets + 1}) {
    for (const int64_t batch : {1, 3}) {
      RiggedSource model(seq_len, batch, LossOf);
      int64_t done = 0;
      const EvalHooks hooks = {.interrupted = {}, .done = [&](int64_t n) { done += n; }};
      const HeldOutResult result = *EvaluateHeldOut(model, *tokenizer, texts, hooks);
      EXPECT_EQ(result.documents, static_cast<int64_t>(texts.size()));
      EXPECT_EQ(result.bytes, bytes);
      EXPECT_EQ(result.tokens, targets);
      EXPECT_EQ(result.nats, nats);  // sums of sixteenths are exact
      EXPECT_EQ(result.NatsPerToken(), nats / static_cast<double>(targets));
      EXPECT_NEAR(result.BitsPerByte(), nats / std::log(2.0) / static_cast<double>(bytes), 1e-12);
      EXPECT_EQ(done, bytes);
      EXPECT_EQ(static_cast<int64_t>(model.batches.size()),
                (targets + seq_len * batch - 1) / (seq_len * batch));
      size_t at = 0;
      for (const RiggedSource::Batch& b : model.batches) {
        EXPECT_EQ(b.length, seq_len);
        EXPECT_LE(b.windows(), batch);
        for (size_t i = 0; i < b.inputs.size(); ++i, ++at) {
          const bool inside = at + 1 < stream.size();
          ASSERT_EQ(b.inputs[i], inside ? stream[at] : tokenizer->end_of_text());
          ASSERT_EQ(b.targets[i], inside ? stream[at + 1] : kernels::kIgnoredTarget);
        }
      }
    }
  }
}

TEST(HeldOut, ResultsAddUp) {
  HeldOutResult all = {.documents = 1, .bytes = 10, .tokens = 4, .nats = 2};
  all.Add({.documents = 2, .bytes = 30, .tokens = 6, .nats = 8});
  EXPECT_EQ(all.documents, 3);
  EXPECT_EQ(all.NatsPerToken(), 1.0);
  EXPECT_NEAR(all.BitsPerByte(), 10 / std::log(2.0) / 40, 1e-15);
}

TEST(HeldOut, StopsBetweenBatches) {
  const auto tokenizer = testing::SmallTokenizer();
  RiggedSource model(4, 1, LossOf);
  const EvalHooks hooks = {.interrupted = [&] { return model.batches.size() == 2; }, .done = {}};
  const auto result =
      EvaluateHeldOut(model, *tokenizer, {"a text of more than eight tokens, surely"}, hooks);
  EXPECT_TRUE(absl::IsCancelled(result.status()));
  EXPECT_EQ(model.batches.size(), 2u);
}

}  // namespace
}  // namespace lockstep::engine
