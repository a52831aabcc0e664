// SPDX-License-Identifier: Apache-2.0
//
// The presets against the paper's tables, the rules of manifests, and their committed ids.
#include "audit/presets.h"

#include <algorithm>
#include <string>
#include <utility>

#include "audit/run_manifest.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunManifest Get(absl::string_view name) {
  absl::StatusOr<RunManifest> run = Preset(name);
  EXPECT_THAT(run, IsOk());
  return run.ok() ? *run : RunManifest();
}

struct Length {
  int64_t steps = 0;
  int64_t tokens = 0;
};

// The rule of docs/run_manifest.md, step by step: the step that crosses a boundary is whole.
Length LengthOf(const RunManifest& run) {
  Length length;
  for (const BatchPhaseConfig& phase : run.batch) {
    while (length.tokens < phase.until_tokens) {
      length.tokens += phase.windows_per_step * run.model.seq_len;
      ++length.steps;
    }
  }
  return length;
}

int64_t ParametersOf(const ModelConfig& m, bool with_embeddings) {
  const int64_t qkv = m.qkv_width() * m.width;
  const int64_t output = m.width * m.query_width();
  const int64_t mlp = 3 * m.ffn_width * m.width;
  const int64_t embeddings = 2 * m.vocab * m.width;
  return m.layers * (qkv + output + mlp + 2 * m.width) + 2 * m.width +
         (with_embeddings ? embeddings : 0);
}

TEST(Presets, AreListedAndKnown) {
  EXPECT_THAT(PresetNames(), ElementsAre("golden", "tiny", "small", "open-1b"));
  for (const std::string& name : PresetNames()) {
    const RunManifest run = Get(name);
    EXPECT_EQ(run.name, name);
    EXPECT_THAT(ValidateRunManifest(run), IsOk());
    EXPECT_THAT(ParseRunManifest(EncodeRunManifest(run)), IsOkAndHolds(run));
  }
  EXPECT_THAT(Preset("open-2b"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("golden, tiny, small, open-1b")));
}

// Table 3.
TEST(Open1b, HasTheShapeOfTable3) {
  const RunManifest run = Get("open-1b");
  EXPECT_EQ(run.model.layers, 24);
  EXPECT_EQ(run.model.width, 2048);
  EXPECT_EQ(run.model.query_heads, 16);
  EXPECT_EQ(run.model.kv_heads, 4);
  EXPECT_EQ(run.model.head_dim, 128);
  EXPECT_EQ(run.model.ffn_width, 5632);
  EXPECT_EQ(run.model.vocab, 128256);
  EXPECT_EQ(run.model.seq_len, 4096);
  EXPECT_EQ(run.model.window, 512);
  EXPECT_EQ(run.recipe.clip_norm, 1.0);
  EXPECT_EQ(run.recipe.peak_lr, 4.5e-4);
  EXPECT_EQ(run.recipe.warmup_tokens, 667 * 3145728);
  EXPECT_EQ(run.recipe.total_tokens, 400000000000);
  EXPECT_EQ(run.recipe.final_lr_fraction, 0.1);
  // "1.61B (1.08B non-embedding)"
  EXPECT_EQ(ParametersOf(run.model, true), 1607569408);
  EXPECT_EQ(ParametersOf(run.model, false), 1082232832);
}

// Table 2 and section 3.1.
TEST(Open1b, HasTheArchitectureOfTable2) {
  const RunManifest run = Get("open-1b");
  EXPECT_EQ(run.model.rope_theta, 500000.0);
  EXPECT_EQ(run.model.init_std, 0.02);
  EXPECT_EQ(run.recipe.z_loss, 1e-4);
  EXPECT_EQ(run.precision, Precision::kInt8);
  EXPECT_EQ(run.parameter_storage, ParameterStorage::kBf16);
  // Every 5th layer and the last are fully causal: five of 24.
  int full = 0;
  for (int64_t l = 0; l < 24; ++l) {
    const bool is_full = l == 4 || l == 9 || l == 14 || l == 19 || l == 23;
    EXPECT_EQ(run.model.WindowOfLayer(l), is_full ? 0 : 512) << l;
    full += is_full ? 1 : 0;
  }
  EXPECT_EQ(full, 5);
}

// Sections 3.2 and 3.4.2.
TEST(Open1b, HasTheRecipe) {
  const RunManifest run = Get("open-1b");
  EXPECT_EQ(run.recipe.beta1, 0.9);
  EXPECT_EQ(run.recipe.beta2, 0.95);
  EXPECT_EQ(run.recipe.eps, 1e-8);
  EXPECT_EQ(run.recipe.weight_decay, 0.1);
  EXPECT_EQ(run.recipe.spike_norm, 5.0);
  EXPECT_EQ(run.recipe.spike_skip_steps, 5);
  EXPECT_EQ(run.seed, 42u);
  EXPECT_EQ(run.checkpoint_every, 100);
}

// Table 4.
TEST(Open1b, HasTheScheduleOfTable4) {
  const RunManifest run = Get("open-1b");
  EXPECT_EQ(run.topology.ranks(), 48);
  EXPECT_EQ(run.topology.micro_batch, 4);
  ASSERT_EQ(run.batch.size(), 3u);
  const int64_t until[] = {4000000000, 360000000000, 400000000000};
  const int64_t tokens[] = {3145728, 4718592, 9437184};
  const int64_t accumulation[] = {4, 6, 12};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(run.batch[i].until_tokens, until[i]);
    EXPECT_EQ(run.batch[i].windows_per_step * run.model.seq_len, tokens[i]);
    EXPECT_EQ(run.AccumulationOf(run.batch[i]), accumulation[i]);
  }
  // Table 7: "80,957 steps, 4.000e11 tokens".
  EXPECT_EQ(LengthOf(run).steps, 80957);
  EXPECT_EQ(LengthOf(run).tokens, 400004481024);
}

TEST(Presets, HaveTheirLengths) {
  EXPECT_EQ(LengthOf(Get("golden")).steps, 120);
  EXPECT_EQ(LengthOf(Get("tiny")).tokens, 6144000);
  EXPECT_EQ(LengthOf(Get("small")).tokens, 16384000);
  for (const char* name : {"golden", "tiny", "small"}) {
    // No step is cut off by the end of the cosine.
    EXPECT_EQ(LengthOf(Get(name)).tokens, Get(name).recipe.total_tokens) << name;
  }
}

TEST(Golden, HasEveryKindOfThing) {
  const RunManifest run = Get("golden");
  EXPECT_EQ(run.topology.replicas, 2);
  EXPECT_EQ(run.topology.shards, 2);
  EXPECT_EQ(run.AccumulationOf(run.batch[0]), 2);
  EXPECT_EQ(run.AccumulationOf(run.batch[1]), 3);
  EXPECT_EQ(run.model.WindowOfLayer(0), 16);
  EXPECT_EQ(run.model.WindowOfLayer(4), 0) << "as the 5th";
  EXPECT_EQ(run.model.WindowOfLayer(5), 0) << "as the last";
}

// A preset that changes makes other runs of the same run.toml: these ids say that it was meant. The
// corpus and tokenizer digests are zeros here.
TEST(Presets, HaveTheirIds) {
  const std::pair<const char*, const char*> ids[] = {
      {"golden", "a07b68a70f5d1d28cd2ac20fc7f8c44b4f0f7ea0c750a96154ef40c46fdab69f"},
      {"tiny", "7fc834134a7ddacc82f52f2f16b3d5f0b31fc99ac2519a89fbdcfad0678e8dda"},
      {"small", "e20b2e91738cba4c0118cace91210a746a4497d2d10c8b6678a588b6b39139dc"},
      {"open-1b", "356cc1c99472369cf165f696e6255271cf81058e029e454294d4a49d57701f2b"}};
  for (const auto& [name, id] : ids) EXPECT_EQ(RunIdOf(Get(name)).ToHex(), id) << name;
}

}  // namespace
}  // namespace lockstep::audit
