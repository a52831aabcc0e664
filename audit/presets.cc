// SPDX-License-Identifier: Apache-2.0
//
// The presets' numbers. Where the paper gives one, its place stands beside it.
#include "audit/presets.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::audit {
namespace {

// What all share: the recipe of section 3.2, "Optimizer" and "Regularization", and of the network
// sections 3.1 and 3.2. The paper does not give norm_eps. The halt rule and the watch for dead
// tensors are this project's.
RunManifest Shared() {
  RunManifest run;
  run.model = {.full_every = 5, .rope_theta = 5e5, .norm_eps = 1e-6, .init_std = 0.02};
  run.recipe = {.final_lr_fraction = 0.1,
                .beta1 = 0.9,
                .beta2 = 0.95,
                .eps = 1e-8,
                .weight_decay = 0.1,
                .clip_norm = 1.0,
                .z_loss = 1e-4,
                .spike_norm = 5.0,
                .spike_skip_steps = 5,
                .spike_halt_events = 3,
                .spike_halt_steps = 1000,
                .dead_tensor_steps = 100};
  run.precision = Precision::kInt8;
  run.seed = 42;
  run.checkpoint_every = 100;
  return run;
}

// The paper's run: Tables 2, 3 and 4, sections 3.2 and 3.4.2.
RunManifest Open1b() {
  RunManifest run = Shared();
  run.model.layers = 24;
  run.model.width = 2048;
  run.model.query_heads = 16;
  run.model.kv_heads = 4;
  run.model.head_dim = 128;
  run.model.ffn_width = 5632;
  run.model.vocab = 128'256;
  run.model.seq_len = 4096;
  run.model.window = 512;
  run.parameter_storage = ParameterStorage::kBf16;
  run.recipe.peak_lr = 4.5e-4;
  run.recipe.warmup_tokens = int64_t{667} * 3'145'728;
  run.recipe.total_tokens = 400'000'000'000;
  run.batch = {{.windows_per_step = 768, .until_tokens = 4'000'000'000},
               {.windows_per_step = 1152, .until_tokens = 360'000'000'000},
               {.windows_per_step = 2304, .until_tokens = 400'000'000'000}};
  // Six nodes of eight: section 5, "HSDP layout".
  run.topology = {.replicas = 6, .shards = 8, .micro_batch = 4};
  return run;
}

// 1,500 steps of 4,096 tokens. Batches this small have norms that differ by a factor of 20 from
// step to step, so that only what exceeds 100 is a spike.
RunManifest Tiny() {
  RunManifest run = Shared();
  run.model.layers = 4;
  run.model.width = 256;
  run.model.query_heads = 4;
  run.model.kv_heads = 2;
  run.model.head_dim = 64;
  run.model.ffn_width = 704;
  run.model.vocab = 4096;
  run.model.seq_len = 256;
  run.model.window = 64;
  run.parameter_storage = ParameterStorage::kF32;
  run.recipe.peak_lr = 3e-3;
  run.recipe.warmup_tokens = 75 * 4096;
  run.recipe.total_tokens = 1500 * 4096;
  run.recipe.spike_norm = 100;
  run.batch = {{.windows_per_step = 16, .until_tokens = 1500 * 4096}};
  run.topology = {.replicas = 1, .shards = 1, .micro_batch = 8};
  return run;
}

// 1,000 steps of 16,384 tokens.
RunManifest Small() {
  RunManifest run = Shared();
  run.model.layers = 8;
  run.model.width = 512;
  run.model.query_heads = 8;
  run.model.kv_heads = 2;
  run.model.head_dim = 64;
  run.model.ffn_width = 1408;
  run.model.vocab = 16'384;
  run.model.seq_len = 512;
  run.model.window = 128;
  run.parameter_storage = ParameterStorage::kF32;
  run.recipe.peak_lr = 2e-3;
  run.recipe.warmup_tokens = 50 * 16'384;
  run.recipe.total_tokens = 1000 * 16'384;
  run.recipe.spike_norm = 100;
  run.batch = {{.windows_per_step = 32, .until_tokens = 1000 * 16'384}};
  run.topology = {.replicas = 1, .shards = 1, .micro_batch = 4};
  return run;
}

// 120 steps: 80 of 1,024 tokens (accumulation 2) and 40 of 1,536 (accumulation 3, whose reciprocal
// rounds). Layers 5 and 6 are full, the others see 16 keys. Warmup, the cosine's end, the clip and
// the spike protocol all fall inside the run.
RunManifest Golden() {
  constexpr int64_t kFirstPhase = 80 * 1024;
  constexpr int64_t kTokens = kFirstPhase + 40 * 1536;
  RunManifest run = Shared();
  run.model.layers = 6;
  run.model.width = 64;
  run.model.query_heads = 4;
  run.model.kv_heads = 2;
  run.model.head_dim = 16;
  run.model.ffn_width = 96;
  run.model.vocab = 512;
  run.model.seq_len = 64;
  run.model.window = 16;
  run.parameter_storage = ParameterStorage::kBf16;
  run.recipe.peak_lr = 3e-3;
  run.recipe.warmup_tokens = 10 * 1024;
  run.recipe.total_tokens = kTokens;
  run.recipe.clip_norm = 0.5;
  run.recipe.spike_norm = 0.6;
  run.recipe.spike_skip_steps = 2;
  run.recipe.spike_halt_events = 0;
  run.recipe.spike_halt_steps = 0;
  run.batch = {{.windows_per_step = 16, .until_tokens = kFirstPhase},
               {.windows_per_step = 24, .until_tokens = kTokens}};
  run.topology = {.replicas = 2, .shards = 2, .micro_batch = 2};
  run.checkpoint_every = 10;
  return run;
}

using Named = std::pair<const char*, RunManifest (*)()>;
constexpr Named kPresets[] = {
    {"golden", Golden}, {"tiny", Tiny}, {"small", Small}, {"open-1b", Open1b}};

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : kPresets) names.emplace_back(name);
  return names;
}

absl::StatusOr<RunManifest> Preset(absl::string_view name) {
  for (const auto& [known, make] : kPresets) {
    if (name != known) continue;
    RunManifest run = make();
    run.name = known;
    return run;
  }
  return absl::NotFoundError(absl::StrCat(
      "preset: expected one of ", absl::StrJoin(PresetNames(), ", "), "; found \"", name, "\""));
}

}  // namespace lockstep::audit
