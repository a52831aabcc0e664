// SPDX-License-Identifier: Apache-2.0
//
// A whole training step, hashed and not, against PyTorch running the same architecture in fp32 and
// in bf16; and the share of a step that hashing takes.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/presets.h"
#include "base/logging.h"
#include "bench/harness.h"
#include "bench/peer_process.h"
#include "bench/temporary_folder.h"
#include "engine/backend/cpu_backend.h"
#include "engine/memory_plan.h"
#include "engine/state/train_state.h"
#include "engine/train_step.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

// One layer of Open-1B with its embeddings.
audit::RunManifest OneBlock() {
  audit::RunManifest run = *audit::Preset("open-1b");
  run.model.layers = 1;
  run.model.seq_len = 1024;
  run.topology = {.replicas = 1, .shards = 1, .micro_batch = 1};
  return run;
}

audit::RunManifest PresetOf(const std::string& name) {
  return name == "1b-block" ? OneBlock() : *audit::Preset(name);
}

// A run that is stepped over the same random tokens again and again.
class SteppedRun {
 public:
  SteppedRun(const kernels::Context& context, const audit::RunManifest& manifest, int64_t windows,
             bool hash, const MemoryChoices& memory = {}, const std::string& spill_folder = "")
      : context_(context), backend_(CpuBackendOn(context_)) {
    audit::RunManifest run = manifest;
    run.batch = {{.windows_per_step = windows, .until_tokens = run.recipe.total_tokens}};
    run.recipe.spike_norm = 1e6;  // gradients of random tokens are not those of a run
    auto step = TrainStep::Create(*backend_, run,
                                  {.recompute = memory.recompute,
                                   .spill_folder = memory.spill_partials ? spill_folder : "",
                                   .hash = hash});
    LOCKSTEP_CHECK(step.ok(), "{}", step.status());
    step_ = *std::move(step);
    auto state =
        TrainState::Create(*backend_, run, step_->layout(), memory.spill_state ? spill_folder : "");
    LOCKSTEP_CHECK(state.ok(), "{}", state.status());
    state_ = *std::move(state);
    LOCKSTEP_CHECK(state_->Initialize(run, {}).ok(), "initial state");
    for (int64_t i = 0; i < windows * (run.model.seq_len + 1); ++i) {
      batch_.tokens.push_back(static_cast<int32_t>(kernels::RandomBelow(1, 2, i, run.model.vocab)));
    }
  }

  StepTimes Step() {
    auto result = step_->Run(*state_, batch_, [] { return false; });
    LOCKSTEP_CHECK(result.ok(), "{}", result.status());
    LOCKSTEP_CHECK(result->record.outcome == audit::StepOutcome::kUpdated,
                   "a step whose update is skipped is no measure; gradient norm {}",
                   result->record.gradient_norm);
    return result->times;
  }

 private:
  const kernels::Context context_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<TrainState> state_;
  StepBatch batch_;
};

std::string PeerCase(const audit::RunManifest& run, const std::string& type) {
  const audit::ModelConfig& m = run.model;
  return absl::StrCat("case ", m.layers, " ", m.width, " ", m.query_heads, " ", m.kv_heads, " ",
                      m.head_dim, " ", m.ffn_width, " ", m.vocab, " ", m.seq_len, " ", m.window,
                      " ", m.full_every, " ", run.topology.micro_batch, " ", type);
}

// One case: `peer` is "fp32", "bf16" or nothing.
void MeasureStep(bench::Bench& b, const std::string& preset, kernels::Isa isa, bool hash,
                 const std::string& type) {
  const std::string name =
      absl::StrCat(preset, " ", IsaName(isa), " 2T ", hash ? "hashed" : "not hashed");
  if (!b.Wants(name)) return;
  const audit::RunManifest run = PresetOf(preset);
  const int64_t windows = run.topology.micro_batch;
  SteppedRun ours(b.ContextOf(isa, 2), run, windows, hash);
  bench::PeerProcess peer(bench::PyTorchCommand("pytorch_train_step.py", 2));
  const bool there = !type.empty() && peer.Ask(PeerCase(run, type)) && peer.Ask("run");
  b.Compare({.name = name,
             .unit = "tokens/s",
             .work = 1e9 * static_cast<double>(windows * run.model.seq_len),
             .ours = [&] { ours.Step(); },
             .peer = there ? "PyTorch " + type : "",
             .peer_call = there ? std::function<void()>([&] { peer.Ask("run"); }) : nullptr,
             .peer_has_threads = true});
}

LOCKSTEP_BENCH(train_step, "a whole training step of one micro-batch, against PyTorch", b) {
  const std::vector<kernels::Isa> isas = bench::Bench::Isas();
  for (const std::string preset : {"tiny", "small", "1b-block"}) {
    MeasureStep(b, preset, isas.front(), true, "bf16");
    MeasureStep(b, preset, isas.front(), true, "fp32");
    MeasureStep(b, preset, isas.front(), false, "");
    // The peer's turns at the largest take minutes.
    for (size_t i = 1; i < isas.size() && preset != "1b-block"; ++i) {
      MeasureStep(b, preset, isas[i], true, "bf16");
    }
  }
}

LOCKSTEP_BENCH(train_step_profile, "where the time of a step goes, as shares of it", b) {
  for (const std::string name : {"tiny", "small", "1b-block"}) {
    const audit::RunManifest run = PresetOf(name);
    SteppedRun ours(b.ContextOf(bench::Bench::Isas().front(), 2), run, run.topology.micro_batch,
                    true);
    ours.Step();
    StepTimes sum;
    for (int i = 0; i < 3; ++i) {
      const StepTimes times = ours.Step();
      sum.model += times.model;
      sum.reduce += times.reduce;
      sum.update += times.update;
      sum.hash += times.hash;
    }
    for (const auto& [what, seconds] : {std::pair{"passes", sum.model},
                                        {"reduce", sum.reduce},
                                        {"update", sum.update},
                                        {"hash", sum.hash}}) {
      b.Row(absl::StrCat(name, " ", what), seconds / sum.total(), "of a step", "", 0);
    }
  }
}

LOCKSTEP_BENCH(hash_share, "the share of hashing in a step of small with 16,384 tokens", b) {
  const audit::RunManifest run = PresetOf("small");
  SteppedRun ours(b.ContextOf(bench::Bench::Isas().front(), 2), run, 16'384 / run.model.seq_len,
                  true);
  ours.Step();
  StepTimes sum;
  for (int i = 0; i < 3; ++i) {
    const StepTimes times = ours.Step();
    sum.model += times.model + times.reduce + times.update;
    sum.hash += times.hash;
  }
  b.Row("small, 16,384 tokens, 2T", sum.hash / sum.total(), "of a step", "", 0);
}

// The most memory that this process has ever had resident, in bytes.
double PeakResident() {
  rusage usage;
  LOCKSTEP_CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

// Run it alone: the peak is the process's.
LOCKSTEP_BENCH(open_1b_step, "one step of open-1b itself: a sequence of 1,024 tokens, in 24 GB",
               b) {
  audit::RunManifest run = *audit::Preset("open-1b");
  run.model.seq_len = 1024;
  run.topology = {.replicas = 1, .shards = 1, .micro_batch = 1};
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const std::optional<int64_t> available = MemoryForRun();
  const auto most = static_cast<int64_t>(24e9 * 0.9);
  const absl::StatusOr<MemoryPlan> plan =
      FitMemory(run, available ? std::min(*available, most) : most);
  LOCKSTEP_CHECK(plan.ok(), "{}", plan.status());
  std::fprintf(stderr, "%s", plan->ToTable().c_str());
  const bench::TemporaryFolder folder;
  SteppedRun ours(b.ContextOf(bench::Bench::Isas().front(), 2), run, 1, true, plan->choices,
                  folder.path());
  const StepTimes times = ours.Step();
  b.Row("forward and backward", times.model, "s", "", 0);
  b.Row("gradient, norm and clip", times.reduce, "s", "", 0);
  b.Row("AdamW over 1.6 G parameters", times.update, "s", "", 0);
  b.Row("hashing of state and transcript", times.hash, "s", "", 0);
  b.Row("the step", times.total(), "s", "", 0);
  b.Row("memory as planned", static_cast<double>(plan->memory()) / kGiB, "GiB", "", 0);
  b.Row("memory at most resident", PeakResident() / kGiB, "GiB", "", 0);
  b.Row("files of the spill folder", static_cast<double>(plan->disk) / kGiB, "GiB", "", 0);
}

}  // namespace
}  // namespace lockstep::engine
