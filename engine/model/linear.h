// SPDX-License-Identifier: Apache-2.0
//
// A linear layer y = x wᵀ of a block, in int8 or bf16 as the run's manifest says: its product and
// the two gradients. Embedding and head are not such layers.
#ifndef LOCKSTEP_ENGINE_MODEL_LINEAR_H_
#define LOCKSTEP_ENGINE_MODEL_LINEAR_H_

#include <cstdint>

#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/model/parameters.h"

namespace lockstep::engine {

// What a linear layer multiplies and its backward pass needs again: in int8 the quantised tensor,
// in bf16 the tensor itself.
struct LinearInput {
  int8_t* q = nullptr;    // [N, K]
  float* step = nullptr;  // [1]
  BFloat16* x = nullptr;  // [N, K]
  static LinearInput Carve(Carver& carver, audit::Precision precision, int64_t tokens,
                           int64_t inputs);
};

class Linear {
 public:
  // For the tensor of shape [outputs, inputs].
  Linear(audit::Precision precision, int64_t tensor, int64_t outputs, int64_t inputs)
      : precision_(precision), tensor_(tensor), outputs_(outputs), inputs_(inputs) {}

  // Takes what int8 keeps of the weights between optimizer steps; nothing in bf16.
  void Carve(Carver& carver);

  // Once for each value of the parameters, before anything below.
  void Prepare(Backend& backend, const ParametersView& parameters) const;

  // Where the layer that makes the input writes it: `transient` [N, K] in int8, and the input's own
  // memory in bf16. TakeInput then makes the input of it.
  BFloat16* Destination(const LinearInput& input, BFloat16* transient) const {
    return precision_ == audit::Precision::kInt8 ? transient : input.x;
  }
  void TakeInput(Backend& backend, const LinearInput& input, const BFloat16* x,
                 int64_t tokens) const;

  // y [N, O] = x wᵀ.
  void Forward(Backend& backend, const ParametersView& parameters, BFloat16* y,
               const LinearInput& input, int64_t tokens) const;
  // dx [N, K] = dy w.
  void InputGradient(Backend& backend, const ParametersView& parameters, BFloat16* dx,
                     const BFloat16* dy, int64_t tokens) const;
  // dw [O, K] = dyᵀ x, overwritten.
  void WeightGradient(Backend& backend, const ParametersView& parameters, float* dw,
                      const BFloat16* dy, const LinearInput& input, int64_t tokens) const;

  int64_t tensor() const { return tensor_; }

 private:
  audit::Precision precision_;
  int64_t tensor_;
  int64_t outputs_;  // O
  int64_t inputs_;   // K
  // int8: kernels/linear_i8/linear_i8.h.
  int8_t* q_ = nullptr;             // [O, K]
  float* step_ = nullptr;           // [O]
  int32_t* clipped_ = nullptr;      // [O]
  int8_t* q_rotated_ = nullptr;     // [O, K]
  float* scale_rotated_ = nullptr;  // [K]
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_MODEL_LINEAR_H_
