// SPDX-License-Identifier: Apache-2.0
//
// The schedule of the learning rate, the spike protocol step by step, and the watch for dead
// tensors.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "audit/presets.h"
#include "engine/optimizer/dead_tensors.h"
#include "engine/optimizer/learning_rate.h"
#include "engine/optimizer/spike_protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using audit::SpikeState;
using audit::StepOutcome;
using ::testing::HasSubstr;

TEST(LearningRate, Open1bAsTheTablesHaveIt) {
  const audit::Recipe recipe = audit::Preset("open-1b")->recipe;
  constexpr int64_t kStep = 3'145'728;
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, kStep), 4.5e-4 / 667);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 667 * kStep), 4.5e-4);
  EXPECT_LT(LearningRateAt(recipe, 668 * kStep), 4.5e-4);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 400'000'000'000), 4.5e-5);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 500'000'000'000), 4.5e-5);
  const int64_t middle = (667 * kStep + 400'000'000'000) / 2;
  EXPECT_NEAR(LearningRateAt(recipe, middle), (4.5e-4 + 4.5e-5) / 2, 1e-12);
}

TEST(LearningRate, IsTheCosineAtEveryPlace) {
  const audit::Recipe recipe = audit::Preset("tiny")->recipe;
  for (int64_t tokens = 0; tokens <= recipe.total_tokens; tokens += 4096) {
    const double warmup = static_cast<double>(recipe.warmup_tokens);
    const double x = (static_cast<double>(tokens) - warmup) /
                     (static_cast<double>(recipe.total_tokens) - warmup);
    const double expected =
        x <= 0 ? recipe.peak_lr * static_cast<double>(tokens) / warmup
               : recipe.peak_lr * (0.1 + 0.9 * 0.5 * (1 + std::cos(std::acos(-1.0) * x)));
    ASSERT_NEAR(LearningRateAt(recipe, tokens), expected, 1e-15) << tokens;
  }
}

audit::Recipe SpikeRecipe() {
  audit::Recipe recipe;
  recipe.spike_norm = 5;
  recipe.spike_skip_steps = 5;
  recipe.spike_halt_events = 2;
  recipe.spike_halt_steps = 100;
  return recipe;
}

TEST(SpikeProtocol, SkipsFiveUpdatesFromTheSpikeOn) {
  const audit::Recipe recipe = SpikeRecipe();
  SpikeState state;
  std::vector<StepOutcome> outcomes;
  // Norms above the bound while skipping are no events.
  for (const float norm : {1.0f, 5.0f, 5.78f, 9.0f, 1.0f, 9.0f, 1.0f, 1.0f}) {
    const StepDecision decision = DecideStep(recipe, state, outcomes.size(), 2.5f, norm);
    outcomes.push_back(decision.outcome);
    state = decision.after;
    EXPECT_FALSE(decision.halt);
  }
  constexpr auto kAfter = StepOutcome::kSkippedAfterSpike;
  EXPECT_EQ(outcomes, (std::vector<StepOutcome>{StepOutcome::kUpdated, StepOutcome::kUpdated,
                                                StepOutcome::kSkippedSpike, kAfter, kAfter, kAfter,
                                                kAfter, StepOutcome::kUpdated}));
  EXPECT_EQ(state, (SpikeState{.skips_left = 0, .events = 1, .events_since = 2}));
}

TEST(SpikeProtocol, WhatIsNotFiniteIsAnEvent) {
  const audit::Recipe recipe = SpikeRecipe();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [loss, norm] :
       {std::pair{kNan, 1.0f}, {1.0f, kNan}, {1.0f, kInf}, {kInf, 1.0f}}) {
    const StepDecision decision = DecideStep(recipe, {}, 7, loss, norm);
    EXPECT_EQ(decision.outcome, StepOutcome::kSkippedNonFinite);
    EXPECT_EQ(decision.after, (SpikeState{.skips_left = 4, .events = 1, .events_since = 7}));
  }
}

TEST(SpikeProtocol, HaltsWhenEventsComeTooOften) {
  audit::Recipe recipe = SpikeRecipe();
  recipe.spike_skip_steps = 1;
  SpikeState state;
  const auto event = [&](uint64_t step) {
    const StepDecision decision = DecideStep(recipe, state, step, 1.0f, 9.0f);
    state = decision.after;
    return decision.halt;
  };
  EXPECT_FALSE(event(10));
  EXPECT_FALSE(event(50));
  EXPECT_FALSE(event(110));  // a new count: the first began 100 steps ago
  EXPECT_FALSE(event(150));
  EXPECT_TRUE(event(209));  // the third within 100 steps
  recipe.spike_halt_events = 0;
  EXPECT_FALSE(event(210));
}

TEST(DeadTensors, AreNamedAfterSoManySteps) {
  audit::TensorTable table;
  table.Add("alive", {4});
  table.Add("dead", {4});
  DeadTensorWatch watch(table, 3);
  EXPECT_TRUE(watch.Observe(std::vector<double>{1, 0}).ok());
  EXPECT_TRUE(watch.Observe(std::vector<double>{0, 0}).ok());
  const absl::Status status = watch.Observe(std::vector<double>{1, 0});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("no gradient reached dead for 3 steps"));
  DeadTensorWatch never(table, 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(never.Observe(std::vector<double>{0, 0}).ok());
}

}  // namespace
}  // namespace lockstep::engine
