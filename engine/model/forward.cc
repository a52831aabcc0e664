// SPDX-License-Identifier: Apache-2.0
//
// The forward pass, top to bottom.
#include "engine/model/model.h"

namespace lockstep::engine {

void Model::Forward(const ParametersView& parameters, MicroBatchDigests* digests) {
  Embed(parameters);
  for (int64_t l = 0; l < config_.layers; ++l) {
    if (digests != nullptr) digests->residual.push_back(DigestOf(a_.residual[l], digests));
    AttentionForward(parameters, l);
    MlpForward(parameters, l);
    MlpDown(parameters, l);
  }
  const BFloat16* const last = a_.residual[config_.layers];
  if (digests != nullptr) digests->residual.push_back(DigestOf(last, digests));
  Norm(parameters, layout_.final_norm(), a_.head_input, a_.final_rstd, last);
}

// ids [N] -> residual[0] [N, C]
void Model::Embed(const ParametersView& parameters) {
  backend_.Run(kernels::EmbeddingGatherArgs{.out = a_.embedded,
                                            .table = parameters[layout_.embedding()],
                                            .ids = a_.ids,
                                            .tokens = tokens(),
                                            .cols = config_.width});
  Norm(parameters, layout_.embedding_norm(), a_.residual[0], a_.embedding_rstd, a_.embedded);
}

// residual[l] -> middle: x + Wo Attention(QKNorm(Wqkv RMSNorm(x)))
void Model::AttentionForward(const ParametersView& parameters, int64_t l) {
  const LayerActivations& a = a_.layers[l];
  const LayerLinears& w = linears_[l];
  const int64_t n = tokens();

  BFloat16* normed = w.qkv.Destination(a.qkv_input, a_.normed);
  Norm(parameters, layout_.layer(l).attention_norm, normed, a.attention_rstd, a_.residual[l]);
  w.qkv.TakeInput(backend_, a.qkv_input, normed, n);
  w.qkv.Forward(backend_, parameters, a.qkv, a.qkv_input, n);

  PrepareHeads(a);
  BFloat16* attended = w.output.Destination(a.output_input, a_.attended);
  backend_.Run(
      kernels::AttentionForwardArgs{.out = attended,
                                    .lse = a.lse,
                                    .q = a_.rotated,
                                    .k = a_.rotated + config_.query_width(),
                                    .v = a.qkv + config_.query_width() + config_.kv_width(),
                                    .stride = config_.qkv_width(),
                                    .shape = AttentionOf(l),
                                    .int8_pv = precision_ == audit::Precision::kInt8});
  w.output.TakeInput(backend_, a.output_input, attended, n);
  w.output.Forward(backend_, parameters, a_.branch, a.output_input, n);
  Add(a.middle, a_.residual[l], a_.branch);
}

// middle -> down_input: SwiGLU(Wgu RMSNorm(x))
void Model::MlpForward(const ParametersView& parameters, int64_t l) {
  const LayerActivations& a = a_.layers[l];
  const LayerLinears& w = linears_[l];
  const int64_t n = tokens();

  BFloat16* normed = w.gate_up.Destination(a.gate_up_input, a_.normed);
  Norm(parameters, layout_.layer(l).mlp_norm, normed, a.mlp_rstd, a.middle);
  w.gate_up.TakeInput(backend_, a.gate_up_input, normed, n);
  w.gate_up.Forward(backend_, parameters, a.gate_up, a.gate_up_input, n);

  BFloat16* activated = w.down.Destination(a.down_input, a_.activated);
  backend_.Run(kernels::SwigluForwardArgs{
      .out = activated, .x = a.gate_up, .rows = n, .width = config_.ffn_width});
  w.down.TakeInput(backend_, a.down_input, activated, n);
}

// down_input -> residual[l + 1]: middle + Wd down_input
void Model::MlpDown(const ParametersView& parameters, int64_t l) {
  const LayerActivations& a = a_.layers[l];
  linears_[l].down.Forward(backend_, parameters, a_.branch, a.down_input, tokens());
  Add(a_.residual[l + 1], a.middle, a_.branch);
}

}  // namespace lockstep::engine
