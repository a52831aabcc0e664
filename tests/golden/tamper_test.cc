// SPDX-License-Identifier: Apache-2.0
//
// A trainer that cheats in one bit, and what an honest replay of its step says: mismatch, and
// where. Each case runs the golden run to a step, changes one thing in the trainer's hands, and
// compares the trainer's record of that step with the honest one.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "audit/step_leaves.h"
#include "audit/verdict.h"
#include "engine/backend/cpu_backend.h"
#include "engine/testing/golden_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::golden {
namespace {

constexpr int kStepsBefore = 3;

class Tamper : public ::testing::Test {
 protected:
  using Change = std::function<void(GoldenRun& run, engine::StepBatch& batch)>;

  // What the replay of the step says that a trainer made after `change`.
  std::optional<audit::Difference> Compare(const Change& change) {
    const std::unique_ptr<engine::Backend> backend = *engine::CreateCpuBackend(2);
    GoldenRun honest(*backend);
    GoldenRun trainer(*backend);
    for (int i = 0; i < kStepsBefore; ++i) {
      honest.Step();
      trainer.Step();
    }
    engine::StepBatch batch = *engine::ReadStepBatch(trainer.data());
    change(trainer, batch);
    const engine::StepResult published =
        *trainer.step().Run(trainer.state(), batch, [] { return false; });
    const engine::StepResult replayed = honest.Step();
    std::optional<audit::Difference> difference =
        audit::CompareRecords(published.record, replayed.record);
    if (!difference) return difference;
    const audit::StepLeaves published_leaves = engine::LeavesOf(published, trainer.state());
    const audit::StepLeaves replayed_leaves = engine::LeavesOf(replayed, honest.state());
    EXPECT_TRUE(audit::CheckLeaves(published_leaves, published.record).ok());
    EXPECT_TRUE(audit::CheckLeaves(replayed_leaves, replayed.record).ok());
    audit::LocateDifference(honest.step().layout().table(), published_leaves, replayed_leaves,
                            &*difference);
    return difference;
  }
};

template <class Word>
void FlipBit(void* data, int64_t element, Word bit) {
  static_cast<Word*>(data)[element] ^= bit;
}

void* Element(GoldenRun& run, engine::StatePart part, int64_t tensor) {
  for (const engine::Piece& piece : run.step().layout().Pieces(false)) {
    if (piece.tensor == tensor) return *run.state().Load(part, piece);
  }
  return nullptr;
}

TEST_F(Tamper, NothingIsNoDifference) {
  EXPECT_EQ(Compare([](GoldenRun&, engine::StepBatch&) {}), std::nullopt);
}

TEST_F(Tamper, AWeight) {
  const auto difference = Compare([](GoldenRun& run, engine::StepBatch&) {
    const int64_t tensor = run.step().layout().layer(3).gate_up;
    FlipBit<uint16_t>(Element(run, engine::StatePart::kParameters, tensor), 17, 0x4000);
    run.step().ParametersChanged();
  });
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->step, kStepsBefore);
  EXPECT_EQ(difference->field, "transcript");
  // Layer 3 is the first that computes something else.
  EXPECT_EQ(difference->place, "rank 0, micro-batch 0, residual stream before layer 4");
}

// The lowest bit of one embedding row: seen where its token is, and in the state if it is nowhere.
TEST_F(Tamper, TheSmallestChange) {
  const auto difference = Compare([](GoldenRun& run, engine::StepBatch&) {
    const int64_t tensor = run.step().layout().embedding();
    FlipBit<uint16_t>(Element(run, engine::StatePart::kParameters, tensor), 511 * 64, 1);
  });
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->field, ::testing::AnyOf("parameters", "transcript"));
  EXPECT_NE(difference->place, "");
}

TEST_F(Tamper, AFirstMoment) {
  const auto difference = Compare([](GoldenRun& run, engine::StepBatch&) {
    const int64_t tensor = run.step().layout().layer(1).qkv;
    FlipBit<uint32_t>(Element(run, engine::StatePart::kFirstMoment, tensor), 5, 1u << 30);
  });
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "parameters");
  EXPECT_EQ(difference->place, "tensor layers.1.attention.qkv, chunk 0 of 1");
}

TEST_F(Tamper, ASecondMoment) {
  const auto difference = Compare([](GoldenRun& run, engine::StepBatch&) {
    const int64_t tensor = run.step().layout().layer(2).down;
    // The lowest bit: it may vanish from the parameters' rounding, never from the moment.
    FlipBit<uint32_t>(Element(run, engine::StatePart::kSecondMoment, tensor), 9, 1u << 10);
  });
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->field, ::testing::AnyOf("parameters", "second_moment"));
  EXPECT_EQ(difference->place, "tensor layers.2.mlp.down, chunk 0 of 1");
}

TEST_F(Tamper, AToken) {
  const auto difference = Compare([](GoldenRun&, engine::StepBatch& batch) {
    batch.tokens[200] = (batch.tokens[200] + 1) % 512;
  });
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "windows");
}

TEST_F(Tamper, TheStreamsCursor) {
  const auto difference =
      Compare([](GoldenRun&, engine::StepBatch& batch) { ++batch.cursor.draws; });
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "cursor");
}

TEST_F(Tamper, ConsumedTokens) {
  const auto difference =
      Compare([](GoldenRun& run, engine::StepBatch&) { run.state().tokens += 1024; });
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "tokens_before");
}

TEST_F(Tamper, AdamsTime) {
  const auto difference =
      Compare([](GoldenRun& run, engine::StepBatch&) { run.state().updates += 1; });
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "updates");
}

TEST_F(Tamper, ASpikeThatIsNotOne) {
  const auto difference =
      Compare([](GoldenRun& run, engine::StepBatch&) { run.state().spike.skips_left = 1; });
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "outcome");
}

TEST_F(Tamper, TheLearningRate) {
  audit::RunManifest manifest = GoldenRun::Manifest();
  manifest.recipe.peak_lr *= 1.001;
  const std::unique_ptr<engine::Backend> backend = *engine::CreateCpuBackend(2);
  GoldenRun honest(*backend);
  GoldenRun trainer(*backend, {}, manifest);
  trainer.state().chain = honest.state().chain;
  const engine::StepResult published = trainer.Step();
  const engine::StepResult replayed = honest.Step();
  const auto difference = audit::CompareRecords(published.record, replayed.record);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "learning_rate");
}

}  // namespace
}  // namespace lockstep::golden
