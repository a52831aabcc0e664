// SPDX-License-Identifier: Apache-2.0
//
// The memory plan: what each choice saves, what grows with what, and that the paper's model fits
// where it is said to.
#include "engine/memory_plan.h"

#include <cstdint>
#include <string>
#include <vector>

#include "audit/presets.h"
#include "base/testing/status_matchers.h"
#include "engine/model/model.h"
#include "engine/model/parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMegabyte = 1'000'000;

constexpr MemoryChoices kNothing = {};
constexpr MemoryChoices kPartials = {.spill_partials = true};
constexpr MemoryChoices kRecompute = {.recompute = true, .spill_partials = true};
constexpr MemoryChoices kAll = {.recompute = true, .spill_partials = true, .spill_state = true};

// The paper's model, a micro-batch of one window of 1,024 tokens.
audit::RunManifest Open1bShort(const audit::Topology& topology) {
  audit::RunManifest run = *audit::Preset("open-1b");
  run.model.seq_len = 1024;
  run.topology = topology;
  run.batch = {{.windows_per_step = topology.ranks(), .until_tokens = 1'000'000'000}};
  return run;
}

TEST(MemoryPlan, CountsWhatTheArraysHold) {
  const audit::RunManifest run = *audit::Preset("golden");
  const int64_t flat = ParameterLayout(run.model).flat_elements();
  const MemoryPlan plan = PlanMemory(run, kNothing);
  EXPECT_EQ(plan.parameters, flat * 2);
  EXPECT_EQ(plan.state, 2 * flat * 4);  // the moments: parameters are stored as bf16
  EXPECT_GT(plan.gradients, flat * 4);  // accumulation 2
  EXPECT_EQ(plan.model, Model::BytesNeeded(run, {.windows = 2, .recompute = false}));
  EXPECT_EQ(plan.disk, 0);
  EXPECT_EQ(plan.memory(), plan.parameters + plan.state + plan.gradients + plan.partials +
                               plan.model + plan.working);

  audit::RunManifest f32 = run;
  f32.parameter_storage = audit::ParameterStorage::kF32;
  EXPECT_EQ(PlanMemory(f32, kNothing).state, 3 * flat * 4);
  EXPECT_EQ(PlanMemory(f32, kAll).disk, PlanMemory(run, kAll).disk + flat * 4);

  audit::RunManifest one_micro_batch = run;
  for (auto& phase : one_micro_batch.batch) phase.windows_per_step = 8;
  EXPECT_EQ(PlanMemory(one_micro_batch, kNothing).gradients, flat * 4);
}

TEST(MemoryPlan, EachChoiceSavesMemoryInItsPlace) {
  for (const char* const name : {"small", "open-1b"}) {
    audit::RunManifest run = *audit::Preset(name);
    run.topology.replicas = 6;
    run.topology.shards = 8;
    const MemoryPlan nothing = PlanMemory(run, kNothing);
    const MemoryPlan partials = PlanMemory(run, kPartials);
    EXPECT_LE(partials.partials, nothing.partials);
    EXPECT_EQ(partials.state, nothing.state);
    EXPECT_EQ(partials.model, nothing.model);
    EXPECT_GT(partials.disk, nothing.disk);
    const MemoryPlan recompute = PlanMemory(run, kRecompute);
    EXPECT_LT(recompute.model, partials.model);
    EXPECT_EQ(recompute.disk, partials.disk);
    EXPECT_EQ(recompute.state, partials.state);
    const MemoryPlan all = PlanMemory(run, kAll);
    EXPECT_EQ(all.model, recompute.model);
    EXPECT_GT(all.disk, recompute.disk);
    EXPECT_EQ(all.parameters, nothing.parameters);
  }
  // Where arrays are larger than the pieces of them that stay.
  const audit::RunManifest large = *audit::Preset("open-1b");
  EXPECT_LT(PlanMemory(large, kPartials).memory(), PlanMemory(large, kNothing).memory());
  EXPECT_LT(PlanMemory(large, kAll).memory(), PlanMemory(large, kRecompute).memory());
}

TEST(MemoryPlan, GrowsWithTheRun) {
  const audit::RunManifest base = *audit::Preset("small");
  for (const MemoryChoices& choices : {kNothing, kPartials, kRecompute, kAll}) {
    const int64_t bytes = PlanMemory(base, choices).memory();
    const auto grown = [&](auto change) {
      audit::RunManifest run = base;
      change(run);
      return PlanMemory(run, choices).memory();
    };
    EXPECT_GT(grown([](auto& r) { r.model.layers *= 2; }), bytes);
    EXPECT_GT(grown([](auto& r) { r.model.width *= 2; }), bytes);
    EXPECT_GT(grown([](auto& r) { r.model.ffn_width *= 2; }), bytes);
    EXPECT_GT(grown([](auto& r) { r.model.vocab *= 2; }), bytes);
    EXPECT_GT(grown([](auto& r) { r.model.seq_len *= 2; }), bytes);
    EXPECT_GT(grown([](auto& r) { r.topology.micro_batch *= 2; }), bytes);
    EXPECT_GE(grown([](auto& r) { r.topology.replicas *= 2; }), bytes);
    EXPECT_GE(grown([](auto& r) { r.topology.shards *= 2; }), bytes);
  }
}

TEST(FitMemory, TakesTheFirstThatFits) {
  audit::RunManifest run = *audit::Preset("open-1b");
  const std::vector<MemoryChoices> order = {kNothing, kPartials, kRecompute, kAll};
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t bytes = PlanMemory(run, order[i]).memory();
    const auto exactly = FitMemory(run, bytes);
    ASSERT_THAT(exactly, IsOk());
    EXPECT_EQ(exactly->choices, order[i]) << i;
    const auto less = FitMemory(run, bytes - 1);
    if (i + 1 < order.size()) {
      ASSERT_THAT(less, IsOk());
      EXPECT_EQ(less->choices, order[i + 1]) << i;
    } else {
      EXPECT_THAT(less, StatusIs(absl::StatusCode::kResourceExhausted,
                                 AllOf(HasSubstr(std::to_string(bytes)),
                                       HasSubstr(std::to_string(bytes - 1)),
                                       HasSubstr("parameters"), HasSubstr("in files"))));
    }
  }
}

// The published topology of 6 x 8 ranks, too: partial sums of replicas are in files.
TEST(FitMemory, Open1bOnOneSequenceFits24Gigabytes) {
  for (const audit::Topology& topology :
       {audit::Topology{.replicas = 1, .shards = 1, .micro_batch = 1},
        audit::Topology{.replicas = 6, .shards = 8, .micro_batch = 1}}) {
    const audit::RunManifest run = Open1bShort(topology);
    const auto plan = FitMemory(run, 24'000 * kMegabyte);
    ASSERT_THAT(plan, IsOk());
    EXPECT_LE(plan->memory(), 24'000 * kMegabyte);
    const MemoryPlan all = PlanMemory(run, kAll);
    EXPECT_LE(all.memory(), 16'000 * kMegabyte);
    // Two moments of 1.6 billion elements.
    EXPECT_GE(all.disk, 2 * 4 * ParameterLayout(run.model).elements());
  }
}

TEST(MemoryPlan, TheTableNamesWhatIsGivenUp) {
  const audit::RunManifest run = Open1bShort({.replicas = 2, .shards = 2, .micro_batch = 1});
  const std::string all = PlanMemory(run, kAll).ToTable();
  EXPECT_THAT(all, AllOf(HasSubstr("moments in files"), HasSubstr("computed again"),
                         HasSubstr("partial gradients"), HasSubstr("disk")));
  const std::string nothing = PlanMemory(run, kNothing).ToTable();
  EXPECT_THAT(nothing, Not(HasSubstr("in files")));
  EXPECT_THAT(nothing, Not(HasSubstr("computed again")));
}

TEST(AvailableMemory, IsWhatTheSystemSays) {
  const auto bytes = AvailableMemory();
  ASSERT_TRUE(bytes);
  EXPECT_GT(*bytes, 16 * kMegabyte);
}

}  // namespace
}  // namespace lockstep::engine
