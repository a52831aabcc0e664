// SPDX-License-Identifier: Apache-2.0
//
// The model's memory, and the steps that forward and backward share.
#include "engine/model/model.h"

#include <utility>

#include "base/status.h"
#include "engine/stopwatch.h"

namespace lockstep::engine {

using audit::ModelConfig;

Model::Model(Backend& backend, const audit::RunManifest& manifest, const ModelOptions& options)
    : backend_(backend),
      config_(manifest.model),
      precision_(manifest.precision),
      options_(options),
      z_coefficient_(static_cast<float>(manifest.recipe.z_loss)),
      layout_(manifest.model) {}

Model::Parts Model::CarveParts(Carver& carver, const audit::RunManifest& manifest,
                               const ModelOptions& options) {
  const ModelConfig& c = manifest.model;
  const ParameterLayout layout(c);
  const auto linear = [&](int64_t tensor, int64_t outputs, int64_t inputs) {
    Linear made(manifest.precision, tensor, outputs, inputs);
    made.Carve(carver);
    return made;
  };
  Parts parts;
  for (int64_t l = 0; l < c.layers; ++l) {
    const LayerTensors& t = layout.layer(l);
    parts.linears.push_back({.qkv = linear(t.qkv, c.qkv_width(), c.width),
                             .output = linear(t.attention_output, c.width, c.query_width()),
                             .gate_up = linear(t.gate_up, 2 * c.ffn_width, c.width),
                             .down = linear(t.down, c.width, c.ffn_width)});
  }
  parts.rope_cos = carver.Take<float>(c.seq_len * c.head_dim / 2);
  parts.rope_sin = carver.Take<float>(c.seq_len * c.head_dim / 2);
  parts.activations =
      Activations::Carve(carver, c, manifest.precision, options.windows, options.recompute);
  return parts;
}

int64_t Model::BytesNeeded(const audit::RunManifest& manifest, const ModelOptions& options) {
  Carver carver;
  CarveParts(carver, manifest, options);
  return static_cast<int64_t>(carver.bytes());
}

absl::StatusOr<std::unique_ptr<Model>> Model::Create(Backend& backend,
                                                     const audit::RunManifest& manifest,
                                                     const ModelOptions& options) {
  std::unique_ptr<Model> model(new Model(backend, manifest, options));
  LOCKSTEP_ASSIGN_OR_RETURN(model->memory_, Buffer::Create(backend, BytesNeeded(manifest, options)),
                            "activations and prepared weights");
  Carver carver(model->memory_.data());
  Parts parts = CarveParts(carver, manifest, options);
  model->linears_ = std::move(parts.linears);
  model->rope_cos_ = parts.rope_cos;
  model->rope_sin_ = parts.rope_sin;
  model->a_ = std::move(parts.activations);

  const ModelConfig& c = manifest.model;
  const int64_t angles = c.seq_len * c.head_dim / 2;
  std::vector<float> cos(angles);
  std::vector<float> sin(angles);
  kernels::BuildRopeTable(c.rope_theta, c.head_dim, c.seq_len, cos.data(), sin.data());
  backend.CopyIn(model->rope_cos_, cos.data(), angles * sizeof(float));
  backend.CopyIn(model->rope_sin_, sin.data(), angles * sizeof(float));
  return model;
}

void Model::Prepare(const ParametersView& parameters) {
  for (const LayerLinears& layer : linears_) {
    for (const Linear* linear : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) {
      linear->Prepare(backend_, parameters);
    }
  }
}

void Model::ForwardBackward(const ParametersView& parameters, std::span<const int32_t> inputs,
                            std::span<const int32_t> targets, const GradientSum& gradient,
                            MicroBatchDigests* digests) {
  Start(inputs, targets);
  Forward(parameters, digests);
  Head(parameters, gradient);
  if (digests != nullptr) {
    digests->losses = DigestOf(a_.loss, tokens() * sizeof(float), digests);
    digests->z_losses = DigestOf(a_.z_loss, tokens() * sizeof(float), digests);
  }
  Statistics(gradient);
  Backward(parameters, gradient, digests);
}

void Model::Losses(const ParametersView& parameters, std::span<const int32_t> inputs,
                   std::span<const int32_t> targets, std::span<float> losses) {
  Start(inputs, targets);
  Forward(parameters, nullptr);
  Head(parameters, GradientSum{});
  backend_.CopyOut(losses.data(), a_.loss, losses.size() * sizeof(float));
}

void Model::Start(std::span<const int32_t> inputs, std::span<const int32_t> targets) {
  windows_ = static_cast<int64_t>(inputs.size()) / config_.seq_len;
  backend_.CopyIn(a_.ids, inputs.data(), inputs.size() * sizeof(int32_t));
  backend_.CopyIn(a_.targets, targets.data(), targets.size() * sizeof(int32_t));
}

Digest Model::DigestOf(const void* data, size_t bytes, MicroBatchDigests* digests) {
  const Stopwatch watch(&digests->seconds);
  return backend_.RootOf(data, bytes);
}

Digest Model::DigestOf(const BFloat16* boundary, MicroBatchDigests* digests) {
  return DigestOf(boundary, tokens() * config_.width * sizeof(BFloat16), digests);
}

// ---- what both directions use

void Model::Norm(const ParametersView& parameters, int64_t gain, BFloat16* y, float* rstd,
                 const BFloat16* x) {
  const int64_t width = config_.width;
  backend_.Run(kernels::RmsNormForwardArgs{.y = y,
                                           .rstd = rstd,
                                           .x = x,
                                           .gain = parameters[gain],
                                           .tokens = tokens(),
                                           .heads = 1,
                                           .cols = width,
                                           .y_stride = width,
                                           .x_stride = width,
                                           .inv_cols = kernels::RmsNormInverse(width),
                                           .eps = static_cast<float>(config_.norm_eps)});
}

// Queries or keys inside a [N, S] tensor, each head alone, without gain.
void Model::HeadNorm(BFloat16* y, float* rstd, const BFloat16* x, int64_t heads) {
  backend_.Run(kernels::RmsNormForwardArgs{.y = y,
                                           .rstd = rstd,
                                           .x = x,
                                           .gain = {},
                                           .tokens = tokens(),
                                           .heads = heads,
                                           .cols = config_.head_dim,
                                           .y_stride = config_.qkv_width(),
                                           .x_stride = config_.qkv_width(),
                                           .inv_cols = kernels::RmsNormInverse(config_.head_dim),
                                           .eps = static_cast<float>(config_.norm_eps)});
}

void Model::Rotate(BFloat16* x, int64_t heads, bool backward) {
  backend_.Run(kernels::RopeArgs{.out = x,
                                 .x = x,
                                 .cos = rope_cos_,
                                 .sin = rope_sin_,
                                 .tokens = tokens(),
                                 .heads = heads,
                                 .d_head = config_.head_dim,
                                 .out_stride = config_.qkv_width(),
                                 .x_stride = config_.qkv_width(),
                                 .sequence = config_.seq_len,
                                 .backward = backward});
}

void Model::Add(BFloat16* out, const BFloat16* x, const BFloat16* y) {
  backend_.Run(
      kernels::ResidualAddArgs{.out = out, .x = x, .y = y, .count = tokens() * config_.width});
}

kernels::AttentionShape Model::AttentionOf(int64_t layer) const {
  return {.batch = windows_,
          .tokens = config_.seq_len,
          .query_heads = config_.query_heads,
          .kv_heads = config_.kv_heads,
          .head_dim = config_.head_dim,
          .window = config_.WindowOfLayer(layer)};
}

// Queries and keys as attention takes them, into a_.rotated: normalised by head, then rotated.
void Model::PrepareHeads(const LayerActivations& a) {
  const int64_t keys = config_.query_width();  // where they begin
  HeadNorm(a_.rotated, a.q_rstd, a.qkv, config_.query_heads);
  HeadNorm(a_.rotated + keys, a.k_rstd, a.qkv + keys, config_.kv_heads);
  Rotate(a_.rotated, config_.query_heads, false);
  Rotate(a_.rotated + keys, config_.kv_heads, false);
}

}  // namespace lockstep::engine
