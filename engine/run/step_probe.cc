// SPDX-License-Identifier: Apache-2.0
//
// Two probes that differ in their vocabulary only.
#include "engine/run/step_probe.h"

#include <algorithm>
#include <memory>

#include "base/status.h"
#include "engine/state/train_state.h"
#include "engine/step_batch.h"
#include "engine/stopwatch.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kProbeTokens = 256;
constexpr int64_t kProbeVocab = 4096;
constexpr int kStepsMin = 1;  // after one that warms up
constexpr int kStepsMax = 8;
constexpr double kSecondsEnough = 0.5;

int64_t RanksOf(const audit::RunManifest& run) { return run.topology.ranks(); }

// Multiplications of one layer for one token: its matrices, and two products with each key.
double LayerWork(const audit::ModelConfig& c, int64_t layer) {
  const double matrices = static_cast<double>(c.qkv_width()) * c.width +
                          static_cast<double>(c.query_width()) * c.width +
                          3.0 * static_cast<double>(c.ffn_width) * c.width;
  const int64_t window = c.WindowOfLayer(layer);
  // Keys that the queries of a sequence see, on average: 1, 2, ... up to the window.
  const double most = static_cast<double>(window == 0 ? c.seq_len : std::min(window, c.seq_len));
  const double keys = most - most * (most - 1) / 2 / static_cast<double>(c.seq_len);
  return matrices + 2.0 * static_cast<double>(c.query_width()) * keys;
}

double LayersWork(const audit::ModelConfig& c) {
  double work = 0;
  for (int64_t l = 0; l < c.layers; ++l) work += LayerWork(c, l);
  return work;
}

// Parameters, moments and gradient once; the residual stream and its gradient at each boundary.
double BytesHashed(const audit::RunManifest& run, int64_t tokens) {
  const audit::ModelConfig& c = run.model;
  const double parameter = run.parameter_storage == audit::ParameterStorage::kF32 ? 16 : 14;
  return parameter * static_cast<double>(ParameterLayout(c).elements()) +
         4.0 * static_cast<double>(c.layers + 1) * static_cast<double>(c.width * tokens);
}

// The least times of a few steps.
absl::StatusOr<StepTimes> Measure(Backend& backend, const audit::RunManifest& probe,
                                  const MemoryChoices& choices, const std::string& spill_folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainStep> step,
      TrainStep::Create(backend, probe,
                        {.recompute = choices.recompute,
                         .spill_folder = choices.spill_partials ? spill_folder : ""}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainState> state,
      TrainState::Create(backend, probe, step->layout(), choices.spill_state ? spill_folder : ""));
  LOCKSTEP_RETURN_IF_ERROR(state->Initialize(probe, StreamCursor()));
  StepBatch batch;
  const int64_t tokens = probe.batch[0].windows_per_step * (probe.model.seq_len + 1);
  for (int64_t i = 0; i < tokens; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(kernels::RandomBelow(1, 1, i, probe.model.vocab)));
  }
  StepTimes least;
  double seconds = 0;
  for (int i = 0; i <= kStepsMax && (i <= kStepsMin || seconds < kSecondsEnough); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const StepResult result,
                              step->Run(*state, batch, [] { return false; }));
    const StepTimes& t = result.times;
    if (i == 0) continue;
    seconds += t.total();
    least = i == 1 ? t
                   : StepTimes{.model = std::min(least.model, t.model),
                               .reduce = std::min(least.reduce, t.reduce),
                               .update = std::min(least.update, t.update),
                               .hash = std::min(least.hash, t.hash)};
  }
  return least;
}

}  // namespace

int64_t ProbeVocab(const audit::RunManifest& run) { return std::min(run.model.vocab, kProbeVocab); }

audit::RunManifest ProbeManifest(const audit::RunManifest& run, int64_t vocab) {
  audit::RunManifest probe = run;
  probe.model.layers = 1;
  probe.model.vocab = vocab;
  probe.model.seq_len = std::min(run.model.seq_len, kProbeTokens);
  probe.model.window = std::min(run.model.window, probe.model.seq_len);
  const int64_t windows = std::max<int64_t>(1, kProbeTokens / probe.model.seq_len);
  probe.topology = {.replicas = std::min<int64_t>(2, RanksOf(run)),
                    .shards = 1,
                    .micro_batch = std::min(run.topology.micro_batch, windows)};
  probe.batch = {{.windows_per_step = RanksOf(probe) * probe.topology.micro_batch,
                  .until_tokens = run.batch.back().until_tokens}};
  // Noise for text has large gradients; the update is to be measured all the same.
  probe.recipe.spike_norm = 1e30;
  probe.parent.reset();
  return probe;
}

absl::StatusOr<StepEstimate> EstimateStep(Backend& backend, const audit::RunManifest& run,
                                          int64_t windows, const MemoryChoices& choices,
                                          const std::string& spill_folder) {
  StepEstimate estimate;
  StepTimes few;
  StepTimes many;
  const audit::RunManifest large = ProbeManifest(run, ProbeVocab(run));
  const audit::RunManifest small = ProbeManifest(run, std::max<int64_t>(2, ProbeVocab(run) / 4));
  {
    const Stopwatch watch(&estimate.probe_seconds);
    LOCKSTEP_ASSIGN_OR_RETURN(few, Measure(backend, small, choices, spill_folder), "probe");
    LOCKSTEP_ASSIGN_OR_RETURN(many, Measure(backend, large, choices, spill_folder), "probe");
  }
  const double tokens = static_cast<double>(windows) * static_cast<double>(run.model.seq_len);
  const int64_t probe_tokens = large.batch[0].windows_per_step * large.model.seq_len;
  const double words = static_cast<double>(large.model.vocab - small.model.vocab);
  const double head = std::max(0.0, many.model - few.model) / words;  // seconds a word
  const double layer =
      std::max(many.model / 4, many.model - head * static_cast<double>(large.model.vocab));
  const double layers = LayersWork(run.model) / LayersWork(large.model);
  estimate.times.model = tokens / static_cast<double>(probe_tokens) *
                         (layer * layers + head * static_cast<double>(run.model.vocab));
  const double parameters = static_cast<double>(ParameterLayout(run.model).elements()) /
                            static_cast<double>(ParameterLayout(large.model).elements());
  estimate.times.update = many.update * parameters;
  estimate.times.reduce = many.reduce * parameters * static_cast<double>(RanksOf(run)) /
                          static_cast<double>(RanksOf(large));
  estimate.times.hash =
      many.hash * BytesHashed(run, windows * run.model.seq_len) / BytesHashed(large, probe_tokens);
  estimate.micro_batches = windows / run.topology.micro_batch;
  return estimate;
}

}  // namespace lockstep::engine
