// SPDX-License-Identifier: Apache-2.0
//
// The byte model's step, top to bottom.
#include "kernels/demo/byte_model.h"

#include <algorithm>

#include "kernels/adamw/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/cross_entropy/lm_head.h"
#include "kernels/embedding/embedding.h"
#include "kernels/random/fill.h"
#include "kernels/random/random.h"
#include "kernels/reduce/reduce.h"
#include "kernels/residual_add/residual_add.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace lockstep::kernels {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr double kLearningRate = 1e-2;

constexpr AttentionShape kAttention = {.batch = ByteModel::kBatch,
                                       .tokens = ByteModel::kSequence,
                                       .query_heads = 1,
                                       .kv_heads = 1,
                                       .head_dim = ByteModel::kWidth,
                                       .window = 0};

}  // namespace

ByteModel::ByteModel(const Context& context, uint64_t seed)
    : context_(context),
      seed_(seed),
      parameters_(kCount),
      gradient_(kCount),
      m_(kCount),
      v_(kCount),
      rope_cos_(kSequence * kWidth / 2),
      rope_sin_(kSequence * kWidth / 2),
      ids_(kTokens),
      targets_(kTokens),
      loss_(kTokens),
      z_(kTokens),
      rstd1_(kTokens),
      rstd2_(kTokens),
      lse_(kTokens) {
  for (auto* tensor :
       {&x0_, &h1_, &rotated_, &attended_, &x1_, &h2_, &dh2_, &dx1_, &dq_, &dk_, &dv_, &dx0_}) {
    tensor->resize(kTokens * kWidth);
  }
  Run(context_, TruncatedNormalFillF32Args{.out = parameters_.data(),
                                           .count = 2 * kTable,
                                           .sigma = 0.02f,
                                           .source = {.seed = seed_, .stream = StreamOf("init")}});
  std::fill(parameters_.begin() + 2 * kTable, parameters_.end(), 1.0f);
  BuildRopeTable(10000.0, kWidth, kSequence, rope_cos_.data(), rope_sin_.data());
}

float ByteModel::Step(ByteSpan text) {
  ReadWindows(text);
  Forward();
  Backward();
  Update();
  float loss;
  Run(context_,
      RowSumsArgs{.out = &loss, .x = loss_.data(), .rows = 1, .cols = kTokens, .stride = kTokens});
  return loss * (1.0f / kTokens);
}

void ByteModel::ReadWindows(ByteSpan text) {
  const uint64_t starts = text.size() - kSequence;
  for (int64_t b = 0; b < kBatch; ++b) {
    const uint64_t at = RandomBelow(seed_, StreamOf("windows"), step_ * kBatch + b, starts);
    for (int64_t t = 0; t < kSequence; ++t) {
      ids_[b * kSequence + t] = text[at + t];
      targets_[b * kSequence + t] = text[at + t + 1];
    }
  }
}

void ByteModel::Forward() {
  const float* embedding = parameters_.data();
  const float* gain1 = embedding + 2 * kTable;
  Run(context_, EmbeddingGatherArgs{.out = x0_.data(),
                                    .table = embedding,
                                    .ids = ids_.data(),
                                    .tokens = kTokens,
                                    .cols = kWidth});
  RmsNormForwardArgs norm = {.y = h1_.data(),
                             .rstd = rstd1_.data(),
                             .x = x0_.data(),
                             .gain = gain1,
                             .tokens = kTokens,
                             .heads = 1,
                             .cols = kWidth,
                             .y_stride = kWidth,
                             .x_stride = kWidth,
                             .inv_cols = RmsNormInverse(kWidth),
                             .eps = kEpsilon};
  Run(context_, norm);
  Run(context_, RopeArgs{.out = rotated_.data(),
                         .x = h1_.data(),
                         .cos = rope_cos_.data(),
                         .sin = rope_sin_.data(),
                         .tokens = kTokens,
                         .heads = 1,
                         .d_head = kWidth,
                         .out_stride = kWidth,
                         .x_stride = kWidth,
                         .sequence = kSequence,
                         .backward = false});
  // Queries and keys are the rotated embeddings, values the plain ones.
  Run(context_, AttentionForwardArgs{.out = attended_.data(),
                                     .lse = lse_.data(),
                                     .q = rotated_.data(),
                                     .k = rotated_.data(),
                                     .v = h1_.data(),
                                     .stride = kWidth,
                                     .shape = kAttention,
                                     .int8_pv = true});
  Run(context_,
      ResidualAddArgs{
          .out = x1_.data(), .x = x0_.data(), .y = attended_.data(), .count = kTokens * kWidth});
  norm.y = h2_.data();
  norm.rstd = rstd2_.data();
  norm.x = x1_.data();
  norm.gain = gain1 + kWidth;
  Run(context_, norm);
}

void ByteModel::Backward() {
  const float* head = parameters_.data() + kTable;
  const float* gain1 = head + kTable;
  float* dembedding = gradient_.data();
  float* dhead = dembedding + kTable;
  float* dgain1 = dhead + kTable;

  LmHeadLoss(context_, LmHeadLossArgs{.loss = loss_.data(),
                                      .z = z_.data(),
                                      .dx = dh2_.data(),
                                      .dw = dhead,
                                      .x = h2_.data(),
                                      .w = head,
                                      .targets = targets_.data(),
                                      .tokens = kTokens,
                                      .width = kWidth,
                                      .vocab = kVocab,
                                      .scale = 1.0f / kTokens,
                                      .z_coefficient = 1e-4f});

  RmsNormBackwardArgs norm = {.dx = dx1_.data(),
                              .dy = dh2_.data(),
                              .x = x1_.data(),
                              .rstd = rstd2_.data(),
                              .gain = gain1 + kWidth,
                              .tokens = kTokens,
                              .heads = 1,
                              .cols = kWidth,
                              .dx_stride = kWidth,
                              .dy_stride = kWidth,
                              .x_stride = kWidth,
                              .inv_cols = RmsNormInverse(kWidth)};
  RmsNormGainGradientArgs gain = {.dgain = dgain1 + kWidth,
                                  .dy = dh2_.data(),
                                  .x = x1_.data(),
                                  .rstd = rstd2_.data(),
                                  .tokens = kTokens,
                                  .heads = 1,
                                  .cols = kWidth,
                                  .dy_stride = kWidth,
                                  .x_stride = kWidth};
  Run(context_, norm);
  RmsNormGainGradient(context_, gain);

  Run(context_, AttentionBackwardArgs{.dq = dq_.data(),
                                      .dk = dk_.data(),
                                      .dv = dv_.data(),
                                      .gradient_stride = kWidth,
                                      .dout = dx1_.data(),
                                      .q = rotated_.data(),
                                      .k = rotated_.data(),
                                      .v = h1_.data(),
                                      .stride = kWidth,
                                      .lse = lse_.data(),
                                      .shape = kAttention});
  // The gradients of queries and keys meet, turn back, and meet the values'.
  ResidualAddArgs add = {
      .out = dq_.data(), .x = dq_.data(), .y = dk_.data(), .count = kTokens * kWidth};
  Run(context_, add);
  Run(context_, RopeArgs{.out = dq_.data(),
                         .x = dq_.data(),
                         .cos = rope_cos_.data(),
                         .sin = rope_sin_.data(),
                         .tokens = kTokens,
                         .heads = 1,
                         .d_head = kWidth,
                         .out_stride = kWidth,
                         .x_stride = kWidth,
                         .sequence = kSequence,
                         .backward = true});
  add.y = dv_.data();
  Run(context_, add);

  norm.dx = dx0_.data();
  norm.dy = gain.dy = dq_.data();
  norm.x = gain.x = x0_.data();
  norm.rstd = gain.rstd = rstd1_.data();
  norm.gain = gain1;
  gain.dgain = dgain1;
  Run(context_, norm);
  RmsNormGainGradient(context_, gain);
  add.out = dx0_.data();
  add.x = dx0_.data();
  add.y = dx1_.data();
  Run(context_, add);

  std::vector<int32_t> starts(kVocab + 1);
  std::vector<int32_t> positions(kTokens);
  BuildTokenIndex(ids_.data(), kTokens, kVocab, starts.data(), positions.data());
  Run(context_, EmbeddingScatterArgs{.dtable = dembedding,
                                     .dy = dx0_.data(),
                                     .starts = starts.data(),
                                     .positions = positions.data(),
                                     .vocab = kVocab,
                                     .cols = kWidth});
}

void ByteModel::Update() {
  SumOfSquaresArgs squares = {.totals = nullptr, .x = gradient_.data(), .count = kCount};
  std::vector<float> totals(squares.items());
  squares.totals = totals.data();
  Run(context_, squares);
  float norm;
  Run(context_, GlobalNormArgs{.norm = &norm, .totals = totals.data(), .chunks = squares.items()});
  ++step_;
  Run(context_, AdamWArgs{.p_f32 = parameters_.data(),
                          .p_bf16 = nullptr,
                          .m = m_.data(),
                          .v = v_.data(),
                          .g = gradient_.data(),
                          .count = kCount,
                          .scalars = AdamWScalarsAt(step_, kLearningRate, 0.9, 0.95, 1e-8, 0.1),
                          .clip_scale = ClipScale(norm, 1.0f)});
}

Digest ByteModel::StateDigest() const {
  Sha256Hasher hasher;
  for (const std::vector<float>* part : {&parameters_, &m_, &v_}) {
    hasher.Update(ByteSpan(reinterpret_cast<const uint8_t*>(part->data()), kCount * sizeof(float)));
  }
  return hasher.Finish();
}

}  // namespace lockstep::kernels
