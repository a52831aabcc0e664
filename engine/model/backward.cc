// SPDX-License-Identifier: Apache-2.0
//
// The backward pass, from the loss down: each function undoes its namesake of forward.cc.
#include "engine/model/model.h"

namespace lockstep::engine {

// ---- where gradients go

float* Model::GradientOf(int64_t tensor, const GradientSum& gradient) const {
  return gradient.first ? gradient.flat + layout_.offset(tensor) : gradient.scratch;
}

// flat = 0 + g * scale where g already lies in flat, or flat = flat + g * scale.
void Model::AddGradient(int64_t offset, int64_t elements, const GradientSum& gradient) {
  float* sum = gradient.flat + offset;
  if (gradient.first) {
    if (gradient.scale == 1.0f) return;
    backend_.Run(kernels::ScaleArgs{.x = sum, .count = elements, .scale = gradient.scale});
    return;
  }
  backend_.Run(kernels::AccumulateArgs{
      .acc = sum, .x = gradient.scratch, .count = elements, .scale = gradient.scale});
}

void Model::TensorDone(int64_t tensor, const GradientSum& gradient) {
  AddGradient(layout_.offset(tensor), layout_.elements(tensor), gradient);
}

// ---- the loss

// head_input -> loss, z_loss, and with a gradient: dbranch = d head_input, the head's gradient.
void Model::Head(const ParametersView& parameters, const GradientSum& gradient) {
  const bool backward = gradient.flat != nullptr;
  backend_.Run(
      kernels::LmHeadLossArgs{.loss = a_.loss,
                              .z = a_.z_loss,
                              .dx = backward ? a_.dbranch : nullptr,
                              .dw = backward ? GradientOf(layout_.head(), gradient) : nullptr,
                              .x = a_.head_input,
                              .w = parameters[layout_.head()],
                              .targets = a_.targets,
                              .tokens = tokens(),
                              .width = config_.width,
                              .vocab = config_.vocab,
                              .scale = 1.0f / static_cast<float>(tokens()),
                              .z_coefficient = z_coefficient_});
  if (backward) TensorDone(layout_.head(), gradient);
}

// Mean loss and mean z-loss, as if they were a tensor of two elements.
void Model::Statistics(const GradientSum& gradient) {
  const int64_t offset = layout_.statistics_offset();
  float* means = gradient.first ? gradient.flat + offset : gradient.scratch;
  const int64_t n = tokens();
  for (const auto& [out, of] : {std::pair{means, a_.loss}, std::pair{means + 1, a_.z_loss}}) {
    backend_.Run(kernels::RowSumsArgs{.out = out, .x = of, .rows = 1, .cols = n, .stride = n});
  }
  backend_.Run(kernels::ScaleArgs{.x = means, .count = 2, .scale = 1.0f / static_cast<float>(n)});
  AddGradient(offset, 2, gradient);
}

// ---- the network

void Model::Backward(const ParametersView& parameters, const GradientSum& gradient,
                     MicroBatchDigests* digests) {
  if (digests != nullptr) digests->dresidual.resize(config_.layers + 1);

  NormBackward(parameters, layout_.final_norm(), gradient, a_.dresidual, a_.dbranch,
               a_.residual[config_.layers], a_.final_rstd);
  for (int64_t l = config_.layers; l-- > 0;) {
    if (digests != nullptr) digests->dresidual[l + 1] = DigestOf(a_.dresidual, digests);
    if (options_.recompute) {
      AttentionForward(parameters, l);
      MlpForward(parameters, l);
    }
    MlpBackward(parameters, l, gradient);
    AttentionBackward(parameters, l, gradient);
  }
  if (digests != nullptr) digests->dresidual[0] = DigestOf(a_.dresidual, digests);
  EmbedBackward(parameters, gradient);
}

// dresidual: d residual[l + 1] -> d middle
void Model::MlpBackward(const ParametersView& parameters, int64_t l, const GradientSum& gradient) {
  const LayerActivations& a = a_.layers[l];
  const LayerLinears& w = linears_[l];
  const int64_t n = tokens();

  BFloat16* dactivated = a_.activated;
  w.down.InputGradient(backend_, parameters, dactivated, a_.dresidual, n);
  w.down.WeightGradient(backend_, parameters, GradientOf(w.down.tensor(), gradient), a_.dresidual,
                        a.down_input, n);
  TensorDone(w.down.tensor(), gradient);

  BFloat16* dgate_up = a.gate_up;  // in place
  backend_.Run(kernels::SwigluBackwardArgs{
      .dx = dgate_up, .dout = dactivated, .x = a.gate_up, .rows = n, .width = config_.ffn_width});
  w.gate_up.InputGradient(backend_, parameters, a_.dbranch, dgate_up, n);
  w.gate_up.WeightGradient(backend_, parameters, GradientOf(w.gate_up.tensor(), gradient), dgate_up,
                           a.gate_up_input, n);
  TensorDone(w.gate_up.tensor(), gradient);

  NormBackward(parameters, layout_.layer(l).mlp_norm, gradient, a_.dbranch, a_.dbranch, a.middle,
               a.mlp_rstd);
  Add(a_.dresidual, a_.dresidual, a_.dbranch);
}

// dresidual: d middle -> d residual[l]
void Model::AttentionBackward(const ParametersView& parameters, int64_t l,
                              const GradientSum& gradient) {
  const LayerActivations& a = a_.layers[l];
  const LayerLinears& w = linears_[l];
  const int64_t n = tokens();
  const int64_t keys = config_.query_width();
  const int64_t values = keys + config_.kv_width();

  BFloat16* dattended = a_.attended;
  w.output.InputGradient(backend_, parameters, dattended, a_.dresidual, n);
  w.output.WeightGradient(backend_, parameters, GradientOf(w.output.tensor(), gradient),
                          a_.dresidual, a.output_input, n);
  TensorDone(w.output.tensor(), gradient);

  PrepareHeads(a);  // again, rather than kept for every layer
  backend_.Run(kernels::AttentionBackwardArgs{.dq = a_.dqkv,
                                              .dk = a_.dqkv + keys,
                                              .dv = a_.dqkv + values,
                                              .gradient_stride = config_.qkv_width(),
                                              .dout = dattended,
                                              .q = a_.rotated,
                                              .k = a_.rotated + keys,
                                              .v = a.qkv + values,
                                              .stride = config_.qkv_width(),
                                              .lse = a.lse,
                                              .shape = AttentionOf(l)});
  Rotate(a_.dqkv, config_.query_heads, true);
  Rotate(a_.dqkv + keys, config_.kv_heads, true);
  HeadNormBackward(a_.dqkv, a.qkv, a.q_rstd, config_.query_heads);
  HeadNormBackward(a_.dqkv + keys, a.qkv + keys, a.k_rstd, config_.kv_heads);

  w.qkv.InputGradient(backend_, parameters, a_.dbranch, a_.dqkv, n);
  w.qkv.WeightGradient(backend_, parameters, GradientOf(w.qkv.tensor(), gradient), a_.dqkv,
                       a.qkv_input, n);
  TensorDone(w.qkv.tensor(), gradient);

  NormBackward(parameters, layout_.layer(l).attention_norm, gradient, a_.dbranch, a_.dbranch,
               a_.residual[l], a.attention_rstd);
  Add(a_.dresidual, a_.dresidual, a_.dbranch);
}

void Model::EmbedBackward(const ParametersView& parameters, const GradientSum& gradient) {
  NormBackward(parameters, layout_.embedding_norm(), gradient, a_.dbranch, a_.dresidual,
               a_.embedded, a_.embedding_rstd);
  backend_.Run(EmbeddingGradientArgs{.dtable = GradientOf(layout_.embedding(), gradient),
                                     .dy = a_.dbranch,
                                     .ids = a_.ids,
                                     .tokens = tokens(),
                                     .vocab = config_.vocab,
                                     .cols = config_.width});
  TensorDone(layout_.embedding(), gradient);
}

// dx may be dy: the gain's gradient is taken first.
void Model::NormBackward(const ParametersView& parameters, int64_t gain,
                         const GradientSum& gradient, BFloat16* dx, const BFloat16* dy,
                         const BFloat16* x, const float* rstd) {
  const int64_t width = config_.width;
  backend_.Run(kernels::RmsNormGainGradientArgs{.dgain = GradientOf(gain, gradient),
                                                .dy = dy,
                                                .x = x,
                                                .rstd = rstd,
                                                .tokens = tokens(),
                                                .heads = 1,
                                                .cols = width,
                                                .dy_stride = width,
                                                .x_stride = width});
  TensorDone(gain, gradient);
  backend_.Run(kernels::RmsNormBackwardArgs{.dx = dx,
                                            .dy = dy,
                                            .x = x,
                                            .rstd = rstd,
                                            .gain = parameters[gain],
                                            .tokens = tokens(),
                                            .heads = 1,
                                            .cols = width,
                                            .dx_stride = width,
                                            .dy_stride = width,
                                            .x_stride = width,
                                            .inv_cols = kernels::RmsNormInverse(width)});
}

void Model::HeadNormBackward(BFloat16* dx, const BFloat16* x, const float* rstd, int64_t heads) {
  backend_.Run(kernels::RmsNormBackwardArgs{.dx = dx,
                                            .dy = dx,
                                            .x = x,
                                            .rstd = rstd,
                                            .gain = {},
                                            .tokens = tokens(),
                                            .heads = heads,
                                            .cols = config_.head_dim,
                                            .dx_stride = config_.qkv_width(),
                                            .dy_stride = config_.qkv_width(),
                                            .x_stride = config_.qkv_width(),
                                            .inv_cols = kernels::RmsNormInverse(config_.head_dim)});
}

}  // namespace lockstep::engine
