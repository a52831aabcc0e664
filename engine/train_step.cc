// SPDX-License-Identifier: Apache-2.0
//
// The step, top to bottom.
#include "engine/train_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/merkle.h"
#include "base/status.h"
#include "engine/optimizer/learning_rate.h"
#include "engine/optimizer/spike_protocol.h"
#include "engine/stopwatch.h"

namespace lockstep::engine {
namespace {

using audit::StepOutcome;

// One leaf for each window: its token ids as u32, little-endian.
Digest WindowsRoot(const std::vector<int32_t>& tokens, int64_t window_tokens) {
  std::vector<Digest> leaves;
  std::vector<uint8_t> bytes(window_tokens * 4);
  for (size_t first = 0; first < tokens.size(); first += window_tokens) {
    for (int64_t t = 0; t < window_tokens; ++t) {
      const auto id = static_cast<uint32_t>(tokens[first + t]);
      for (int b = 0; b < 4; ++b) bytes[4 * t + b] = static_cast<uint8_t>(id >> (8 * b));
    }
    leaves.push_back(MerkleLeafHash(bytes));
  }
  return MerkleRoot(leaves);
}

}  // namespace

audit::StepLeaves LeavesOf(const StepResult& result, const TrainState& state) {
  return {.step = result.record.step,
          .parameters = state.leaves().parameters,
          .first_moment = state.leaves().first_moment,
          .second_moment = state.leaves().second_moment,
          .gradient = result.gradient_leaves,
          .transcript = result.transcript};
}

absl::StatusOr<std::unique_ptr<TrainStep>> TrainStep::Create(Backend& backend,
                                                             const audit::RunManifest& manifest,
                                                             const StepOptions& options) {
  std::unique_ptr<TrainStep> step(new TrainStep(backend, manifest, options));
  LOCKSTEP_ASSIGN_OR_RETURN(step->model_, Model::Create(backend, manifest,
                                                        {.windows = manifest.topology.micro_batch,
                                                         .recompute = options.recompute}));
  const ParameterLayout& layout = step->layout();
  const bool accumulates =
      std::any_of(manifest.batch.begin(), manifest.batch.end(),
                  [&](const auto& phase) { return manifest.AccumulationOf(phase) > 1; });
  if (accumulates) {
    LOCKSTEP_ASSIGN_OR_RETURN(step->scratch_,
                              Buffer::Create(backend, layout.elements_max() * sizeof(float)),
                              "a tensor's gradient");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(step->totals_,
                            Buffer::Create(backend, (layout.table().chunks() + 1) * sizeof(float)));
  step->reducer_ =
      std::make_unique<GradientReducer>(backend, layout, manifest.topology, options.spill_folder);
  return step;
}

absl::StatusOr<StepResult> TrainStep::Run(TrainState& state, const StepBatch& batch,
                                          absl::FunctionRef<bool()> interrupted) {
  StepResult result;
  audit::StepRecord& record = result.record;
  record.step = state.step;
  record.tokens_before = state.tokens;
  record.tokens = batch.tokens.size() / (manifest_.model.seq_len + 1) * manifest_.model.seq_len;
  record.learning_rate = static_cast<float>(
      LearningRateAt(manifest_.recipe, static_cast<int64_t>(record.tokens_before + record.tokens)));
  record.previous_chain = state.chain;

  if (!prepared_) {
    const Stopwatch watch(&result.times.update);
    model_->Prepare(state.parameters());
    prepared_ = true;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(FlatArray* const gradient,
                            Gradient(state, batch, interrupted, &result));
  LOCKSTEP_RETURN_IF_ERROR(Measure(*gradient, &result));

  const StepDecision decision =
      DecideStep(manifest_.recipe, state.spike, record.step, record.loss, record.gradient_norm);
  record.outcome = decision.outcome;
  record.spike = decision.after;
  result.halt = decision.halt;
  record.updates = state.updates + (record.outcome == StepOutcome::kUpdated ? 1 : 0);
  LOCKSTEP_RETURN_IF_ERROR(Update(state, *gradient, &result));

  state.step += 1;
  state.tokens += record.tokens;
  state.updates = record.updates;
  state.cursor = batch.cursor;
  state.spike = record.spike;
  if (options_.hash) {
    const Stopwatch watch(&result.times.hash);
    const StateRoots roots = state.Roots();
    record.parameters = roots.parameters;
    record.first_moment = roots.first_moment;
    record.second_moment = roots.second_moment;
    record.gradient = MerkleRoot(result.gradient_leaves);
    record.windows = WindowsRoot(batch.tokens, manifest_.model.seq_len + 1);
    record.transcript = audit::TranscriptRoot(result.transcript);
    record.cursor = CursorDigest(state.cursor);
    state.chain = audit::ChainAfter(record);
  }
  result.chain = state.chain;
  return result;
}

// Algorithm 1: the gradients of all ranks, one after another, reduced.
absl::StatusOr<FlatArray*> TrainStep::Gradient(const TrainState& state, const StepBatch& batch,
                                               absl::FunctionRef<bool()> interrupted,
                                               StepResult* result) {
  reducer_->Restart();
  for (int64_t rank = 0; rank < manifest_.topology.ranks(); ++rank) {
    LOCKSTEP_ASSIGN_OR_RETURN(float* const gradient, reducer_->BeginRank());
    LOCKSTEP_RETURN_IF_ERROR(Rank(state, batch, rank, gradient, interrupted, result));
    const Stopwatch watch(&result->times.reduce);
    LOCKSTEP_RETURN_IF_ERROR(reducer_->EndRank());
  }
  const Stopwatch watch(&result->times.reduce);
  return reducer_->Finish();
}

// The micro-batches of one rank. Window m of the step belongs to rank m mod ranks.
absl::Status TrainStep::Rank(const TrainState& state, const StepBatch& batch, int64_t rank,
                             float* gradient, absl::FunctionRef<bool()> interrupted,
                             StepResult* result) {
  const int64_t seq_len = manifest_.model.seq_len;
  const int64_t ranks = manifest_.topology.ranks();
  const int64_t micro_batch = manifest_.topology.micro_batch;
  const auto windows = static_cast<int64_t>(batch.tokens.size()) / (seq_len + 1);
  const int64_t accumulation = windows / (ranks * micro_batch);
  std::vector<int32_t> inputs(micro_batch * seq_len);
  std::vector<int32_t> targets(micro_batch * seq_len);
  for (int64_t k = 0; k < accumulation; ++k) {
    if (interrupted()) return absl::CancelledError("interrupted within a step");
    for (int64_t j = 0; j < micro_batch; ++j) {
      const int64_t window = rank + ranks * (k * micro_batch + j);
      const auto first = batch.tokens.begin() + window * (seq_len + 1);
      std::copy_n(first, seq_len, inputs.begin() + j * seq_len);
      std::copy_n(first + 1, seq_len, targets.begin() + j * seq_len);
    }
    const Stopwatch watch(&result->times.model);
    MicroBatchDigests digests;
    model_->ForwardBackward(state.parameters(), inputs, targets,
                            {.flat = gradient,
                             .scratch = scratch_.as<float>(),
                             .first = k == 0,
                             .scale = 1.0f / static_cast<float>(accumulation)},
                            options_.hash ? &digests : nullptr);
    // Counted as hashing, not as the model's.
    result->times.hash += digests.seconds;
    result->times.model -= digests.seconds;
    if (options_.hash) {
      result->transcript.push_back({.rank = static_cast<uint32_t>(rank),
                                    .micro_batch = static_cast<uint32_t>(k),
                                    .losses = digests.losses,
                                    .z_losses = digests.z_losses,
                                    .residual = std::move(digests.residual),
                                    .dresidual = std::move(digests.dresidual)});
    }
  }
  return absl::OkStatus();
}

// Losses and norm of the step.
absl::Status TrainStep::Measure(FlatArray& gradient, StepResult* result) {
  const Stopwatch watch(&result->times.update);
  const ParameterLayout& layout = this->layout();
  const int64_t chunks = layout.table().chunks();
  float* const totals = totals_.as<float>();
  for (const Piece& piece : layout.Pieces(/*with_statistics=*/true)) {
    LOCKSTEP_ASSIGN_OR_RETURN(float* const g, gradient.Load(piece));
    if (piece.tensor < 0) {
      float means[2];
      backend_.CopyOut(means, g, sizeof(means));
      result->record.loss = means[0];
      result->record.z_loss = means[1];
      continue;
    }
    backend_.Run(kernels::SumOfSquaresArgs{
        .totals = totals + layout.first_chunk(piece), .x = g, .count = piece.count});
  }
  backend_.Run(
      kernels::GlobalNormArgs{.norm = totals + chunks, .totals = totals, .chunks = chunks});
  std::vector<float> host(chunks + 1);
  backend_.CopyOut(host.data(), totals, host.size() * sizeof(float));
  result->record.gradient_norm = host[chunks];
  for (const audit::TensorInfo& tensor : layout.table().tensors()) {
    double squares = 0;
    for (int64_t c = 0; c < audit::ChunksOf(tensor.elements); ++c) {
      squares += host[tensor.first_chunk + c];
    }
    result->gradient_squares.push_back(squares);
  }
  return absl::OkStatus();
}

// Clip, AdamW and the digests, piece by piece.
absl::Status TrainStep::Update(TrainState& state, FlatArray& gradient, StepResult* result) {
  static_assert(audit::kChunkElements == kernels::kNormChunk);
  const audit::StepRecord& record = result->record;
  const audit::Recipe& recipe = manifest_.recipe;
  const bool update = record.outcome == StepOutcome::kUpdated;
  const float clip =
      std::isfinite(record.gradient_norm)
          ? kernels::ClipScale(record.gradient_norm, static_cast<float>(recipe.clip_norm))
          : 1.0f;
  const auto scalars = [&](double weight_decay) {
    return kernels::AdamWScalarsAt(static_cast<int64_t>(std::max<uint64_t>(record.updates, 1)),
                                   record.learning_rate, recipe.beta1, recipe.beta2, recipe.eps,
                                   weight_decay);
  };
  const kernels::AdamWScalars decaying = scalars(recipe.weight_decay);
  const kernels::AdamWScalars plain = scalars(0);

  if (options_.hash) result->gradient_leaves.resize(layout().table().chunks());
  for (const Piece& piece : layout().Pieces(/*with_statistics=*/false)) {
    LOCKSTEP_ASSIGN_OR_RETURN(float* const g, gradient.Load(piece));
    if (clip != 1.0f) {
      const Stopwatch watch(&result->times.update);
      backend_.Run(kernels::ScaleArgs{.x = g, .count = piece.count, .scale = clip});
    }
    if (options_.hash) {
      const Stopwatch watch(&result->times.hash);
      HashChunks(backend_, layout(), piece, g, sizeof(float), result->gradient_leaves);
    }
    if (!update) continue;
    LOCKSTEP_RETURN_IF_ERROR(
        UpdatePiece(state, piece, g, layout().decays(piece.tensor) ? decaying : plain, result));
  }
  if (update) {
    const Stopwatch watch(&result->times.update);
    model_->Prepare(state.parameters());
  }
  return absl::OkStatus();
}

// The gradient is clipped already.
absl::Status TrainStep::UpdatePiece(TrainState& state, const Piece& piece, const float* gradient,
                                    const kernels::AdamWScalars& scalars, StepResult* result) {
  void* data[3];
  constexpr StatePart kParts[] = {StatePart::kParameters, StatePart::kFirstMoment,
                                  StatePart::kSecondMoment};
  {
    const Stopwatch watch(&result->times.update);
    for (int i = 0; i < 3; ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(data[i], state.Load(kParts[i], piece));
    }
    const bool stored_as_f32 = state.master() != nullptr;
    backend_.Run(kernels::AdamWArgs{.p_f32 = stored_as_f32 ? static_cast<float*>(data[0]) : nullptr,
                                    .p_bf16 = state.working() + piece.offset,
                                    .m = static_cast<float*>(data[1]),
                                    .v = static_cast<float*>(data[2]),
                                    .g = gradient,
                                    .count = piece.count,
                                    .scalars = scalars,
                                    .clip_scale = 1.0f});
  }
  if (options_.hash) {
    const Stopwatch watch(&result->times.hash);
    for (int i = 0; i < 3; ++i) state.HashPiece(kParts[i], piece, data[i]);
  }
  const Stopwatch watch(&result->times.update);
  if (state.master() != nullptr) LOCKSTEP_RETURN_IF_ERROR(state.master()->Store(piece));
  LOCKSTEP_RETURN_IF_ERROR(state.first_moment().Store(piece));
  return state.second_moment().Store(piece);
}

}  // namespace lockstep::engine
