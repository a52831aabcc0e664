// SPDX-License-Identifier: Apache-2.0
//
// Where each activation lies.
#include "engine/model/activations.h"

namespace lockstep::engine {
namespace {

LayerActivations CarveLayer(Carver& carver, const audit::ModelConfig& c, audit::Precision precision,
                            int64_t n) {
  return {.attention_rstd = carver.Take<float>(n),
          .qkv_input = LinearInput::Carve(carver, precision, n, c.width),
          .qkv = carver.Take<BFloat16>(n * c.qkv_width()),
          .q_rstd = carver.Take<float>(n * c.query_heads),
          .k_rstd = carver.Take<float>(n * c.kv_heads),
          .lse = carver.Take<float>(n * c.query_heads),
          .output_input = LinearInput::Carve(carver, precision, n, c.query_width()),
          .middle = carver.Take<BFloat16>(n * c.width),
          .mlp_rstd = carver.Take<float>(n),
          .gate_up_input = LinearInput::Carve(carver, precision, n, c.width),
          .gate_up = carver.Take<BFloat16>(n * 2 * c.ffn_width),
          .down_input = LinearInput::Carve(carver, precision, n, c.ffn_width)};
}

}  // namespace

Activations Activations::Carve(Carver& carver, const audit::ModelConfig& c,
                               audit::Precision precision, int64_t windows, bool recompute) {
  const int64_t n = windows * c.seq_len;
  Activations a;
  a.ids = carver.Take<int32_t>(n);
  a.targets = carver.Take<int32_t>(n);
  a.embedded = carver.Take<BFloat16>(n * c.width);
  a.embedding_rstd = carver.Take<float>(n);
  for (int64_t l = 0; l <= c.layers; ++l) {
    a.residual.push_back(carver.Take<BFloat16>(n * c.width));
  }
  for (int64_t l = 0; l < c.layers; ++l) {
    a.layers.push_back(recompute && l > 0 ? a.layers[0] : CarveLayer(carver, c, precision, n));
  }
  a.final_rstd = carver.Take<float>(n);
  a.head_input = carver.Take<BFloat16>(n * c.width);
  a.loss = carver.Take<float>(n);
  a.z_loss = carver.Take<float>(n);
  a.normed = carver.Take<BFloat16>(n * c.width);
  a.rotated = carver.Take<BFloat16>(n * c.qkv_width());
  a.attended = carver.Take<BFloat16>(n * c.query_width());
  a.activated = carver.Take<BFloat16>(n * c.ffn_width);
  a.branch = carver.Take<BFloat16>(n * c.width);
  a.dresidual = carver.Take<BFloat16>(n * c.width);
  a.dbranch = carver.Take<BFloat16>(n * c.width);
  a.dqkv = carver.Take<BFloat16>(n * c.qkv_width());
  return a;
}

}  // namespace lockstep::engine
