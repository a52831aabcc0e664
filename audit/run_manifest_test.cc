// SPDX-License-Identifier: Apache-2.0
//
// The manifest's text, and each of its rules broken once.
#include "audit/run_manifest.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "audit/run_manifest_fields.h"
#include "audit/testing/digests.h"
#include "base/bytes.h"
#include "base/canonical_json.h"
#include "base/file.h"
#include "base/testing/source_dir.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// docs/run_manifest.md shows it.
constexpr char kSampleText[] =
    R"({"batch":[{"until_tokens":81920,"windows_per_step":16},)"
    R"({"until_tokens":143360,"windows_per_step":24}],"checkpoint_every":10,)"
    R"("corpus":"c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",)"
    R"("format":"lockstep-run","model":{"ffn_width":96,"full_every":5,"head_dim":16,)"
    R"("init_std":0.02,"kv_heads":2,"layers":6,"norm_eps":0.000001,"query_heads":4,)"
    R"("rope_theta":500000,"seq_len":64,"vocab":512,"width":64,"window":16},"name":"example",)"
    R"("numerics":"lockstep-numerics-1","parameter_storage":"bf16","precision":"int8",)"
    R"("recipe":{"beta1":0.9,"beta2":0.95,"clip_norm":1,"dead_tensor_steps":100,"eps":1e-8,)"
    R"("final_lr_fraction":0.1,"peak_lr":0.003,"spike_halt_events":0,"spike_halt_steps":0,)"
    R"("spike_norm":2,"spike_skip_steps":2,"total_tokens":143360,"warmup_tokens":10240,)"
    R"("weight_decay":0.1,"z_loss":0.0001},"seed":42,)"
    R"("tokenizer":"7070707070707070707070707070707070707070707070707070707070707070",)"
    R"("topology":{"micro_batch":2,"replicas":2,"shards":2},"version":1})";

// Its SHA-256 is from Python's hashlib.
constexpr char kSampleId[] = "30a022c00675469a5be309a245152bab393e321ab3ab0bde8b981a126342fa51";

RunManifest Sample() { return ParseRunManifest(kSampleText).value(); }

TEST(RunManifest, HasOneText) {
  const RunManifest run = Sample();
  EXPECT_EQ(run.name, "example");
  EXPECT_EQ(run.model.layers, 6);
  EXPECT_EQ(run.model.rope_theta, 500000.0);
  EXPECT_EQ(run.precision, Precision::kInt8);
  EXPECT_EQ(run.parameter_storage, ParameterStorage::kBf16);
  EXPECT_EQ(run.recipe.eps, 1e-8);
  EXPECT_EQ(run.batch,
            (std::vector<BatchPhaseConfig>{{.windows_per_step = 16, .until_tokens = 81920},
                                           {.windows_per_step = 24, .until_tokens = 143360}}));
  EXPECT_EQ(run.topology, (Topology{.replicas = 2, .shards = 2, .micro_batch = 2}));
  EXPECT_EQ(run.seed, 42u);
  EXPECT_EQ(run.corpus, Filled(0xc0));
  EXPECT_EQ(run.tokenizer, Filled(0x70));
  EXPECT_EQ(run.checkpoint_every, 10);
  EXPECT_FALSE(run.parent.has_value());
  EXPECT_EQ(EncodeRunManifest(run), kSampleText);
  EXPECT_EQ(RunIdOf(run).ToHex(), kSampleId);
}

TEST(RunManifest, KeepsEveryField) {
  RunManifest run = Sample();
  run.precision = Precision::kBf16;
  run.parameter_storage = ParameterStorage::kF32;
  run.seed = (uint64_t{1} << 53) - 1;
  run.recipe.peak_lr = 1.0 / 3;
  run.recipe.spike_halt_events = 2;
  run.recipe.spike_halt_steps = 50;
  run.parent = {.run_id = Filled(1), .step = 60, .tokens = 60 * 1024, .chain = Filled(2)};
  EXPECT_THAT(ParseRunManifest(EncodeRunManifest(run)), IsOkAndHolds(run));
  EXPECT_THAT(EncodeRunManifest(run), HasSubstr("\"peak_lr\":0.3333333333333333,"));
  EXPECT_THAT(EncodeRunManifest(run), HasSubstr("\"seed\":9007199254740991,"));
  EXPECT_NE(RunIdOf(run), RunIdOf(Sample()));
}

// Each leaf of the JSON is part of the id: no field is written and then not read, or read from
// elsewhere.
TEST(RunManifest, EveryFieldIsItsOwn) {
  RunManifest run = Sample();
  const auto check = [&](const auto& field, auto& value) {
    const auto before = value;
    // Another value in range, which other rules may dislike.
    using T = std::remove_reference_t<decltype(value)>;
    value = static_cast<T>(value == field.least ? field.most : field.least);
    const auto json = ParseCanonicalJson(EncodeRunManifest(run));
    ASSERT_THAT(json, IsOk());
    int found = 0;
    for (const nlohmann::json& part :
         {(*json)["model"], (*json)["recipe"], (*json)["topology"], (*json)["batch"][1]}) {
      if (part.contains(field.name) && part[field.name].template get<T>() == value) ++found;
    }
    EXPECT_EQ(found, 1) << field.name;
    value = before;
  };
  VisitModelFields(run.model, check);
  VisitRecipeFields(run.recipe, check);
  VisitTopologyFields(run.topology, check);
  VisitBatchFields(run.batch[1], check);
}

struct Violation {
  const char* field;
  std::function<void(RunManifest&)> change;
};

std::vector<Violation> Violations() {
  using M = RunManifest;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      {"name", [](M& m) { m.name = ""; }},
      {"name", [](M& m) { m.name = "Example"; }},
      {"name", [](M& m) { m.name = "-example"; }},
      {"name", [](M& m) { m.name = "a/b"; }},
      {"name", [](M& m) { m.name = std::string(65, 'a'); }},
      {"numerics", [](M& m) { m.numerics = "lockstep-numerics-2"; }},
      {"seed", [](M& m) { m.seed = uint64_t{1} << 53; }},
      {"checkpoint_every", [](M& m) { m.checkpoint_every = 0; }},
      {"model.query_heads", [](M& m) { m.model.query_heads = 5; }},
      {"model.head_dim", [](M& m) { m.model.head_dim = 24; }},
      {"model.head_dim", [](M& m) { m.model.head_dim = 272; }},
      {"model.window", [](M& m) { m.model.window = 65; }},
      {"model.norm_eps", [](M& m) { m.model.norm_eps = kNan; }},
      {"model.rope_theta", [](M& m) { m.model.rope_theta = kInfinity; }},
      {"model",
       [](M& m) {
         m.precision = Precision::kBf16;
         m.model.layers = 4096;
         m.model.ffn_width = 66'000;
         m.model.width = 65536;
       }},
      {"recipe.beta1", [](M& m) { m.recipe.beta1 = 1; }},
      {"recipe.beta2", [](M& m) { m.recipe.beta2 = 0; }},
      {"recipe.peak_lr", [](M& m) { m.recipe.peak_lr = -0.001; }},
      {"recipe.clip_norm", [](M& m) { m.recipe.clip_norm = kNan; }},
      {"recipe.warmup_tokens", [](M& m) { m.recipe.warmup_tokens = m.recipe.total_tokens; }},
      {"recipe.total_tokens", [](M& m) { m.recipe.total_tokens -= 1; }},
      {"recipe.spike_skip_steps", [](M& m) { m.recipe.spike_skip_steps = 0; }},
      {"recipe.spike_halt_steps", [](M& m) { m.recipe.spike_halt_steps = 1; }},
      {"recipe.spike_halt_steps", [](M& m) { m.recipe.spike_halt_events = 1; }},
      {"batch", [](M& m) { m.batch.clear(); }},
      {"batch", [](M& m) { m.batch.resize(65, m.batch[0]); }},
      {"batch[0].windows_per_step", [](M& m) { m.batch[0].windows_per_step = 12; }},
      {"batch[1].windows_per_step", [](M& m) { m.batch[1].windows_per_step = 0; }},
      {"batch[1].until_tokens", [](M& m) { m.batch[1].until_tokens = 81920; }},
      {"batch[0].until_tokens", [](M& m) { m.batch[0].until_tokens = 0; }},
      {"batch[0].windows_per_step", [](M& m) { m.topology.replicas = 3; }},
      {"topology.shards", [](M& m) { m.topology.shards = 0; }},
      {"topology.replicas", [](M& m) { m.topology.replicas = 4097; }},
      {"model.query_heads and kv_heads, times head_dim",
       [](M& m) {
         m.model.query_heads = 512;
         m.model.head_dim = 256;
         m.model.kv_heads = 8;
       }},
      {"model.ffn_width, gate and up", [](M& m) { m.model.ffn_width = 66'501; }},
      {"topology.micro_batch, times seq_len",
       [](M& m) {
         m.model.seq_len = 66'501;
         m.model.window = 16;
       }},
      {"topology.micro_batch",
       [](M& m) {
         m.precision = Precision::kBf16;
         m.model.seq_len = 1 << 20;
         m.topology = {.replicas = 1, .shards = 1, .micro_batch = 24};
         m.batch = {{.windows_per_step = 24, .until_tokens = 1 << 20}};
         m.recipe.total_tokens = 1 << 20;
       }},
      {"parent.step",
       [](M& m) {
         m.parent = ParentSegment{.run_id = {}, .step = 0, .tokens = 1024, .chain = {}};
       }},
  };
}

TEST(RunManifest, EachRuleIsHeld) {
  ASSERT_THAT(ValidateRunManifest(Sample()), IsOk());
  for (const Violation& violation : Violations()) {
    RunManifest run = Sample();
    violation.change(run);
    EXPECT_THAT(ValidateRunManifest(run),
                StatusIs(kInvalid, AllOf(HasSubstr(absl::StrCat(violation.field, ": expected ")),
                                         HasSubstr("found "))))
        << violation.field;
  }
}

// The largest that the rules between fields let pass.
TEST(RunManifest, LimitsAreTheLast) {
  RunManifest run = Sample();
  run.model.ffn_width = 66'500;  // gate and up: 133,000
  EXPECT_THAT(ValidateRunManifest(run), IsOk());
  run = Sample();
  run.model.seq_len = 66'500;
  EXPECT_THAT(ValidateRunManifest(run), IsOk());
  run = Sample();
  run.precision = Precision::kBf16;
  run.model.ffn_width = 66'501;
  EXPECT_THAT(ValidateRunManifest(run), IsOk());
  run = Sample();
  run.model.window = 64;
  run.recipe.warmup_tokens = run.recipe.total_tokens - 1;
  EXPECT_THAT(ValidateRunManifest(run), IsOk());
}

// Both ends of every field's range are in it, and what lies beyond is not.
TEST(RunManifest, EveryRangeIsHeld) {
  RunManifest run = Sample();
  const auto check = [&](const auto& field, auto& value) {
    const auto before = value;
    const std::string range = absl::StrCat(field.name, ": expected a");
    using T = std::remove_reference_t<decltype(value)>;
    for (const T beyond : {static_cast<T>(field.least - 1), static_cast<T>(field.most * 2 + 1)}) {
      value = beyond;
      EXPECT_THAT(ValidateRunManifest(run), StatusIs(kInvalid, HasSubstr(range))) << beyond;
    }
    for (const T end : {static_cast<T>(field.least), static_cast<T>(field.most)}) {
      value = end;
      // Rules between fields may still refuse it, but not the range.
      EXPECT_THAT(std::string(ValidateRunManifest(run).message()),
                  ::testing::Not(HasSubstr(absl::StrCat(field.name, ": expected a number from"))))
          << field.name;
      EXPECT_THAT(std::string(ValidateRunManifest(run).message()),
                  ::testing::Not(HasSubstr(absl::StrCat(field.name, ": expected an integer"))))
          << field.name;
    }
    value = before;
  };
  VisitModelFields(run.model, check);
  VisitRecipeFields(run.recipe, check);
  VisitTopologyFields(run.topology, check);
  VisitBatchFields(run.batch[0], check);
}

// No rule multiplies before it has looked: under UBSan this finds an overflow.
TEST(RunManifest, ExtremesDoNotOverflow) {
  for (const bool most : {false, true}) {
    RunManifest run = Sample();
    const auto set = [&](const auto& field, auto& value) {
      value = most ? field.most : field.least;
    };
    VisitModelFields(run.model, set);
    VisitRecipeFields(run.recipe, set);
    VisitTopologyFields(run.topology, set);
    for (BatchPhaseConfig& phase : run.batch) VisitBatchFields(phase, set);
    EXPECT_THAT(ValidateRunManifest(run), StatusIs(kInvalid));
    const auto set_extreme = [&](const auto& field, auto& value) {
      using T = std::remove_reference_t<decltype(value)>;
      (void)field;
      value = most ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    };
    VisitModelFields(run.model, set_extreme);
    VisitRecipeFields(run.recipe, set_extreme);
    VisitTopologyFields(run.topology, set_extreme);
    for (BatchPhaseConfig& phase : run.batch) VisitBatchFields(phase, set_extreme);
    EXPECT_THAT(ValidateRunManifest(run), StatusIs(kInvalid));
  }
}

TEST(ParseRunManifest, SaysWhatIsWrong) {
  const auto with = [](absl::string_view from, absl::string_view to) {
    const std::string text = absl::StrReplaceAll(kSampleText, {{from, to}});
    EXPECT_NE(text, kSampleText) << from;
    return ParseRunManifest(text).status();
  };
  EXPECT_THAT(with("lockstep-run", "lockstep-ruin"), StatusIs(kDataLoss, HasSubstr(".format: ")));
  EXPECT_THAT(with("\"version\":1", "\"version\":2"), StatusIs(kDataLoss, HasSubstr(".version: ")));
  EXPECT_THAT(with("\"int8\"", "\"int4\""),
              StatusIs(kDataLoss, AllOf(HasSubstr(".precision: expected \"int8\" or \"bf16\""),
                                        HasSubstr("found \"int4\""))));
  EXPECT_THAT(with("\"bf16\"", "\"f16\""),
              StatusIs(kDataLoss, HasSubstr(".parameter_storage: expected \"bf16\" or \"f32\"")));
  EXPECT_THAT(with("\"layers\":6", "\"layers\":6.5"),
              StatusIs(kDataLoss, HasSubstr("run manifest.model.layers: expected an integer")));
  EXPECT_THAT(with("\"layers\":6", "\"layers\":\"6\""),
              StatusIs(kDataLoss, HasSubstr("run manifest.model.layers: ")));
  EXPECT_THAT(with("\"layers\":6,", ""),
              StatusIs(kDataLoss, HasSubstr("run manifest.model.layers: ")));
  EXPECT_THAT(with("\"layers\":6", "\"layers\":6,\"layerz\":6"),
              StatusIs(kDataLoss, HasSubstr("run manifest.model.layerz: expected no such key")));
  EXPECT_THAT(with("\"seed\":42", "\"seed\":-1"), StatusIs(kDataLoss, HasSubstr(".seed: ")));
  EXPECT_THAT(with("\"seed\":42", "\"seed\":9007199254740992"),
              StatusIs(kDataLoss, HasSubstr(".seed: ")));
  EXPECT_THAT(with("\"windows_per_step\":24", "\"windows_per_step\":25"),
              StatusIs(kDataLoss, HasSubstr("batch[1].windows_per_step: ")));
  EXPECT_THAT(with("\"until_tokens\":143360", "\"until_tokens\":0"),
              StatusIs(kDataLoss, HasSubstr("batch[1].until_tokens: ")));
  EXPECT_THAT(with("70707070", "7070707"), StatusIs(kDataLoss, HasSubstr(".tokenizer: ")));
  EXPECT_THAT(with("c0c0c0c0", "C0c0c0c0"), StatusIs(kDataLoss, HasSubstr(".corpus: ")));
  EXPECT_THAT(with("lockstep-numerics-1", "lockstep-numerics-9"),
              StatusIs(kDataLoss, HasSubstr("numerics: expected \"lockstep-numerics-1\"")));
  EXPECT_THAT(with("\"eps\":1e-8", "\"eps\":0.00000001"), StatusIs(kDataLoss, HasSubstr("byte")));
  EXPECT_THAT(with("\"parameter_storage\"",
                   "\"parent\":{\"chain\":\"0\",\"run_id\":\"0\",\"step\":1,\"tokens\":1},"
                   "\"parameter_storage\""),
              StatusIs(kDataLoss));
}

TEST(ParseRunManifest, EveryCutIsRefused) {
  const std::string text = kSampleText;
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(ParseRunManifest(text.substr(0, size)), StatusIs(kDataLoss)) << size;
  }
  EXPECT_THAT(ParseRunManifest(std::string(kRunManifestBytesMax + 1, '{')),
              StatusIs(kDataLoss, HasSubstr("bytes")));
}

// The page lists each field with its range, and shows the sample.
TEST(RunManifestPage, SaysWhatTheCodeDoes) {
  const auto page = ReadFile(testing::SourcePath("docs/run_manifest.md"), 1 << 20);
  ASSERT_THAT(page, IsOk());
  const auto text = [](auto number) { return CanonicalNumber(static_cast<double>(number)); };
  const auto listed = [&](const auto& field, const auto&) {
    EXPECT_THAT(*page, HasSubstr(absl::StrCat("| `", field.name, "` | ", text(field.least), " … ",
                                              text(field.most), " |")));
  };
  const RunManifest run = Sample();
  VisitModelFields(run.model, listed);
  VisitRecipeFields(run.recipe, listed);
  VisitTopologyFields(run.topology, listed);
  VisitBatchFields(run.batch[0], listed);
  listed(kSeedField, 0);
  listed(kCheckpointEveryField, 0);
  EXPECT_THAT(*page, HasSubstr(kSampleText));
  EXPECT_THAT(*page, HasSubstr(kSampleId));
}

}  // namespace
}  // namespace lockstep::audit
