// SPDX-License-Identifier: Apache-2.0
//
// The network of the paper's section 3.1, forward and backward by hand, for one micro-batch. What a
// step does with the gradients of many is engine/train_step.h.
//
//   x  = RMSNorm(embedding[ids])
//   per layer:  x += Wo Attention(QKNorm(Wqkv RMSNorm(x)))
//               x += Wd SwiGLU(Wgu RMSNorm(x))
//   loss = CrossEntropy(Whead RMSNorm(x)) + z-loss
#ifndef LOCKSTEP_ENGINE_MODEL_MODEL_H_
#define LOCKSTEP_ENGINE_MODEL_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "base/sha256.h"
#include "engine/backend/backend.h"
#include "engine/model/activations.h"
#include "engine/model/linear.h"
#include "engine/model/parameters.h"

namespace lockstep::engine {

struct ModelOptions {
  int64_t windows = 1;  // of a micro-batch, at most
  // Keep each layer's input only and compute the rest again on the way back: the same bits, about a
  // third more work, and the activations of one layer instead of all.
  bool recompute = false;
};

// Where the gradients of the micro-batches of one rank meet:
//   flat = flat + gradient * scale, from 0, micro-batches in their order.
struct GradientSum {
  float* flat = nullptr;  // ParameterLayout::flat_elements
  float* scratch =
      nullptr;        // ParameterLayout::elements_max; may be null if there is one micro-batch
  bool first = true;  // the micro-batch starts the sum
  float scale = 1;    // 1 / micro-batches
};

// Digests of what a micro-batch's computation passed through, for the transcript
// (audit/transcript.h).
struct MicroBatchDigests {
  Digest losses;                  // of [N] f32
  Digest z_losses;                // likewise
  std::vector<Digest> residual;   // [L + 1], before each layer and at the end
  std::vector<Digest> dresidual;  // [L + 1], likewise
  double seconds = 0;             // that they took
};

class Model {
 public:
  static absl::StatusOr<std::unique_ptr<Model>> Create(Backend& backend,
                                                       const audit::RunManifest& manifest,
                                                       const ModelOptions& options);
  // Bytes that Create takes of the backend's memory.
  static int64_t BytesNeeded(const audit::RunManifest& manifest, const ModelOptions& options);

  const ParameterLayout& layout() const { return layout_; }

  // Once for each value of the parameters.
  void Prepare(const ParametersView& parameters);

  // One micro-batch. inputs, targets: [windows, T] on the host; targets may be
  // kernels::kIgnoredTarget. Adds to `gradient`, the statistics with it: mean loss and mean z-loss
  // of the micro-batch. digests, if not null, is filled.
  void ForwardBackward(const ParametersView& parameters, std::span<const int32_t> inputs,
                       std::span<const int32_t> targets, const GradientSum& gradient,
                       MicroBatchDigests* digests);

  // The cross-entropy of each target, [windows, T]; +0 for ignored ones. Nothing is kept.
  void Losses(const ParametersView& parameters, std::span<const int32_t> inputs,
              std::span<const int32_t> targets, std::span<float> losses);

 private:
  struct LayerLinears {
    Linear qkv;
    Linear output;
    Linear gate_up;
    Linear down;
  };

  // What lies in the model's memory.
  struct Parts {
    std::vector<LayerLinears> linears;
    float* rope_cos;  // [T, Dh / 2]
    float* rope_sin;
    Activations activations;
  };
  static Parts CarveParts(Carver& carver, const audit::RunManifest& manifest,
                          const ModelOptions& options);

  Model(Backend& backend, const audit::RunManifest& manifest, const ModelOptions& options);

  // Rows, head count and stride as in kernels/rms_norm/rms_norm.h; gain: a tensor, or -1 for none.
  void Norm(const ParametersView& parameters, int64_t gain, BFloat16* y, float* rstd,
            const BFloat16* x);
  void NormBackward(const ParametersView& parameters, int64_t gain, const GradientSum& gradient,
                    BFloat16* dx, const BFloat16* dy, const BFloat16* x, const float* rstd);
  void HeadNorm(BFloat16* y, float* rstd, const BFloat16* x, int64_t heads);
  void HeadNormBackward(BFloat16* dx, const BFloat16* x, const float* rstd, int64_t heads);
  void Rotate(BFloat16* x, int64_t heads, bool backward);
  void Add(BFloat16* out, const BFloat16* x, const BFloat16* y);
  kernels::AttentionShape AttentionOf(int64_t layer) const;

  Digest DigestOf(const void* data, size_t bytes, MicroBatchDigests* digests);
  Digest DigestOf(const BFloat16* boundary, MicroBatchDigests* digests);

  void Start(std::span<const int32_t> inputs, std::span<const int32_t> targets);
  void Forward(const ParametersView& parameters, MicroBatchDigests* digests);
  void Embed(const ParametersView& parameters);
  void AttentionForward(const ParametersView& parameters, int64_t l);
  void PrepareHeads(const LayerActivations& a);
  void MlpForward(const ParametersView& parameters, int64_t l);
  void MlpDown(const ParametersView& parameters, int64_t l);
  void Backward(const ParametersView& parameters, const GradientSum& gradient,
                MicroBatchDigests* digests);
  void Head(const ParametersView& parameters, const GradientSum& gradient);
  void Statistics(const GradientSum& gradient);
  void MlpBackward(const ParametersView& parameters, int64_t l, const GradientSum& gradient);
  void AttentionBackward(const ParametersView& parameters, int64_t l, const GradientSum& gradient);
  void EmbedBackward(const ParametersView& parameters, const GradientSum& gradient);

  // Where a tensor's gradient of this micro-batch is written, and what then adds it to the sum.
  float* GradientOf(int64_t tensor, const GradientSum& gradient) const;
  void AddGradient(int64_t offset, int64_t elements, const GradientSum& gradient);
  void TensorDone(int64_t tensor, const GradientSum& gradient);

  int64_t tokens() const { return windows_ * config_.seq_len; }  // N

  Backend& backend_;
  const audit::ModelConfig config_;
  const audit::Precision precision_;
  const ModelOptions options_;
  const float z_coefficient_;
  const ParameterLayout layout_;
  std::vector<LayerLinears> linears_;
  float* rope_cos_ = nullptr;  // [T, Dh / 2]
  float* rope_sin_ = nullptr;
  Activations a_;
  Buffer memory_;
  int64_t windows_ = 0;  // of the present micro-batch
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_MODEL_MODEL_H_
