// SPDX-License-Identifier: Apache-2.0
//
// run.toml: presets and what differs from them, every kind of mistake, and the examples.
#include "engine/run_config.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "audit/presets.h"
#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kPaths[] = "[corpus]\npath = \"shards\"\n[tokenizer]\npath = \"../t.txt\"\n";

absl::StatusOr<RunConfig> Parse(absl::string_view text) {
  return ParseRunConfig(text, "runs/run.toml");
}

TEST(RunConfig, IsThePresetUnlessItSays) {
  for (const std::string& name : audit::PresetNames()) {
    const auto config = Parse(absl::StrCat("preset = \"", name, "\"\n", kPaths));
    ASSERT_THAT(config, IsOk());
    EXPECT_EQ(config->manifest, audit::Preset(name).value());
    EXPECT_EQ(config->corpus_path, "runs/shards");
    EXPECT_EQ(config->tokenizer_path, "t.txt");
  }
}

TEST(RunConfig, TakesEveryKindOfValue) {
  const auto config = Parse(absl::StrCat(R"(
preset = "tiny"
name = "mine-1"
seed = 7
checkpoint_every = 50
precision = "bf16"
parameter_storage = "bf16"
[model]
layers = 6
rope_theta = 10_000
[recipe]
peak_lr = 1e-3
clip_norm = 2
[topology]
replicas = 2
[batch]
phases = [{windows_per_step = 16, until_tokens = 1_000_000},
          {windows_per_step = 32, until_tokens = 2_000_000}]
[parent]
path = "first"
step = 40
)",
                                         kPaths));
  ASSERT_THAT(config, IsOk());
  audit::RunManifest run = audit::Preset("tiny").value();
  run.name = "mine-1";
  run.seed = 7;
  run.checkpoint_every = 50;
  run.precision = audit::Precision::kBf16;
  run.parameter_storage = audit::ParameterStorage::kBf16;
  run.model.layers = 6;
  run.model.rope_theta = 10000;
  run.recipe.peak_lr = 1e-3;
  run.recipe.clip_norm = 2;
  run.topology.replicas = 2;
  run.batch = {{.windows_per_step = 16, .until_tokens = 1'000'000},
               {.windows_per_step = 32, .until_tokens = 2'000'000}};
  run.recipe.total_tokens = 2'000'000;  // As the phases are given and it is not.
  EXPECT_EQ(config->manifest, run);
  EXPECT_EQ(config->parent_path, "runs/first");
  EXPECT_EQ(config->parent_step, 40u);
  run.corpus.bytes.fill(3);
  run.tokenizer.bytes.fill(4);
  run.parent.emplace().step = 40;
  run.parent->tokens = 81920;
  run.parent->run_id.bytes.fill(1);
  run.parent->chain.bytes.fill(2);
  EXPECT_EQ(ResolveRunConfig(*config, run.corpus, run.tokenizer, run.parent).value(), run);
}

TEST(RunConfig, KeepsAGivenEndOfTheCosine) {
  const auto config = Parse(absl::StrCat(R"(
preset = "tiny"
[recipe]
total_tokens = 3_000_000
[[batch.phases]]
windows_per_step = 16
until_tokens = 1_000_000
)",
                                         kPaths));
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->manifest.recipe.total_tokens, 3'000'000);
  EXPECT_EQ(config->manifest.batch.size(), 1u);
}

struct Mistake {
  const char* text;  // before the paths
  std::vector<std::string> says;
};

TEST(RunConfig, SaysWhatIsWrongAndWhere) {
  const Mistake mistakes[] = {
      {"", {"preset: expected one of golden, tiny, small, open-1b"}},
      {"preset = \"tinny\"\n", {":1: ", "found \"tinny\""}},
      {"preset = 3\n", {":1: preset: expected a string", "found an integer"}},
      {"preset = \"tiny\"\nsead = 1\n", {":2: sead: ", "such as seed"}},
      {"preset = \"tiny\"\nxyzzyxyzzy = 1\n", {":2: xyzzyxyzzy: expected one of preset, name"}},
      {"preset = \"tiny\"\n[recipe]\npeek_lr = 1\n", {":3: recipe.peek_lr: ", "recipe.peak_lr"}},
      {"preset = \"tiny\"\n[modell]\n", {":2: modell: ", "such as model"}},
      {"preset = \"tiny\"\nmodel = 1\n", {":2: model: expected a table", "an integer"}},
      {"preset = \"tiny\"\n[model]\nlayers = 0\n",
       {":3: model.layers: expected an integer from 1 to 4096", "found 0"}},
      {"preset = \"tiny\"\n[model]\nlayers = 4.0\n",
       {":3: model.layers: expected an integer", "a number with a point"}},
      {"preset = \"tiny\"\n[model]\nlayers = \"4\"\n", {":3: model.layers: ", "a string"}},
      {"preset = \"tiny\"\n[recipe]\nbeta1 = 1\n",
       {":3: recipe.beta1: expected a number from 0.001 to 0.999999", "found 1"}},
      {"preset = \"tiny\"\n[recipe]\nbeta1 = nan\n", {":3: recipe.beta1: ", "found nan"}},
      {"preset = \"tiny\"\n[recipe]\nbeta1 = true\n", {":3: recipe.beta1: ", "true or false"}},
      {"preset = \"tiny\"\nseed = -1\n", {":2: seed: expected an integer from 0", "found -1"}},
      {"preset = \"tiny\"\nprecision = \"int4\"\n",
       {":2: precision: expected \"int8\" or \"bf16\"", "found \"int4\""}},
      {"preset = \"tiny\"\nname = \"\"\n", {":2: name: expected a string of 1 to 64"}},
      {"preset = \"tiny\"\nname = \"Mine\"\n", {"name: expected up to 64", "\"Mine\""}},
      {"preset = \"tiny\"\n[batch]\nphases = []\n", {":3: batch.phases: expected an array"}},
      {"preset = \"tiny\"\n[batch]\nphases = 1\n", {":3: batch.phases: ", "an integer"}},
      {"preset = \"tiny\"\n[[batch.phases]]\nwindows_per_step = 16\n",
       {":2: batch.phases[0].until_tokens: expected an integer", "no such key"}},
      {"preset = \"tiny\"\n[[batch.phases]]\nwindows_per_step = 16\nuntil_tokens = 9\nx = 1\n",
       {":5: batch.phases[0].x: "}},
      {"preset = \"tiny\"\n[[batch.phases]]\nwindows_per_step = 12\nuntil_tokens = 400000\n",
       {"batch[0].windows_per_step: expected a multiple", "found 12"}},
      {"preset = \"tiny\"\n[parent]\npath = \"a\"\nstep = 0\n", {":4: parent.step: ", "from 1"}},
      {"preset = \"tiny\"\n[parent]\npath = \"a\"\n", {":2: parent.step: ", "no such key"}},
      {"preset = \"tiny\"\n[parent]\nstep = 1\n", {":2: parent.path: ", "no such key"}},
      {"preset = \"tiny\"\n[model]\nwindow = 300\n",
       {"model.window: expected at most seq_len, 256", "found 300"}},
      {"preset = \"tiny\"\npreset = \"tiny\"\n", {":2: expected TOML"}},
      {"preset = \n", {":1: expected TOML"}},
  };
  for (const Mistake& mistake : mistakes) {
    const absl::Status status = Parse(absl::StrCat(mistake.text, kPaths)).status();
    EXPECT_THAT(status, StatusIs(kInvalid, StartsWith("runs/run.toml:"))) << mistake.text;
    for (const std::string& part : mistake.says) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part)) << mistake.text;
    }
  }
}

TEST(RunConfig, NeedsItsPaths) {
  EXPECT_THAT(Parse("preset = \"tiny\"\n"),
              StatusIs(kInvalid, HasSubstr("corpus: expected a table with a path")));
  EXPECT_THAT(Parse("preset = \"tiny\"\n[corpus]\n"),
              StatusIs(kInvalid, HasSubstr(":2: corpus.path: expected a path")));
  EXPECT_THAT(Parse("preset = \"tiny\"\n[corpus]\npath = \"c\"\n"),
              StatusIs(kInvalid, HasSubstr("tokenizer: expected a table with a path")));
  EXPECT_THAT(Parse("preset = \"tiny\"\n[corpus]\npath = \"c\"\npaths = \"d\"\n"),
              StatusIs(kInvalid, HasSubstr(":4: corpus.paths: ")));
}

TEST(ResolveRunConfig, TakesTheDigests) {
  const auto config = Parse(absl::StrCat("preset = \"tiny\"\n", kPaths));
  ASSERT_THAT(config, IsOk());
  Digest corpus;
  corpus.bytes.fill(3);
  Digest tokenizer;
  tokenizer.bytes.fill(4);
  const auto run = ResolveRunConfig(*config, corpus, tokenizer, std::nullopt);
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(run->corpus, corpus);
  EXPECT_EQ(run->tokenizer, tokenizer);
  EXPECT_THAT(audit::ParseRunManifest(audit::EncodeRunManifest(*run)), IsOkAndHolds(*run));
}

// As it is written, and with every value taken out of its comment.
TEST(ExampleRunConfig, IsThePresetBothWays) {
  for (const std::string& name : audit::PresetNames()) {
    const auto text = ExampleRunConfig(name);
    ASSERT_THAT(text, IsOk());
    std::vector<std::string> lines = absl::StrSplit(*text, '\n');
    int values = 0;
    for (std::string& line : lines) {
      const bool is_value = absl::StrContains(line, " = ") || absl::StartsWith(line, "# [[");
      if (!absl::StartsWith(line, "# ") || !is_value) continue;
      line.erase(0, 2);
      ++values;
    }
    EXPECT_GT(values, 30);
    for (const std::string& toml : {*text, absl::StrJoin(lines, "\n")}) {
      const auto config = Parse(toml);
      ASSERT_THAT(config, IsOk()) << toml;
      EXPECT_EQ(config->manifest, audit::Preset(name).value());
    }
  }
  EXPECT_THAT(ExampleRunConfig("huge"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(LoadRunConfig, ReadsAFile) {
  const std::string path = absl::StrCat(testing::TempDir(), "/run_config_test.toml");
  const std::string text = ExampleRunConfig("small").value();
  ASSERT_THAT(WriteFileDurably(path, AsBytes(text)), IsOk());
  const auto config = LoadRunConfig(path);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->manifest.name, "small");
  EXPECT_EQ(config->file, path);
  EXPECT_THAT(LoadRunConfig(path + ".absent"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lockstep::engine
