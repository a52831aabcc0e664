// SPDX-License-Identifier: Apache-2.0
//
// The memory of one micro-batch's passes: what the forward pass keeps for the backward pass, and
// what either needs only for a moment. Shapes use the letters of audit::ModelConfig, N = windows T
// for the tokens of the micro-batch, S = (Hq + 2 Hkv) Dh.
#ifndef LOCKSTEP_ENGINE_MODEL_ACTIVATIONS_H_
#define LOCKSTEP_ENGINE_MODEL_ACTIVATIONS_H_

#include <cstdint>
#include <vector>

#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/model/linear.h"

namespace lockstep::engine {

// Of one layer, for its backward pass. Its input is Activations::residual.
struct LayerActivations {
  float* attention_rstd;      // [N]
  LinearInput qkv_input;      // [N, C] attention norm's output
  BFloat16* qkv;              // [N, S]
  float* q_rstd;              // [N, Hq]
  float* k_rstd;              // [N, Hkv]
  float* lse;                 // [B, Hq, T]
  LinearInput output_input;   // [N, Hq Dh] attention's output
  BFloat16* middle;           // [N, C] residual stream after attention
  float* mlp_rstd;            // [N]
  LinearInput gate_up_input;  // [N, C] MLP norm's output
  BFloat16* gate_up;          // [N, 2 F]
  LinearInput down_input;     // [N, F] SwiGLU's output
};

struct Activations {
  int32_t* ids;                          // [N]
  int32_t* targets;                      // [N]
  BFloat16* embedded;                    // [N, C] embedding's output
  float* embedding_rstd;                 // [N]
  std::vector<BFloat16*> residual;       // [L + 1] of [N, C]: before each layer, and at the end
  std::vector<LayerActivations> layers;  // [L], all the same memory if layers are recomputed
  float* final_rstd;                     // [N]
  BFloat16* head_input;                  // [N, C] final norm's output
  float* loss;                           // [N]
  float* z_loss;                         // [N]

  // For a moment.
  BFloat16* normed;  // [N, C]
  BFloat16*
      rotated;  // [N, S]: queries and keys after norm and rotation; the values' place is unused
  BFloat16* attended;   // [N, Hq Dh]; also its gradient
  BFloat16* activated;  // [N, F] SwiGLU's output; also its gradient
  BFloat16* branch;     // [N, C] what a branch adds to the residual stream
  BFloat16* dresidual;  // [N, C]
  BFloat16* dbranch;    // [N, C]
  BFloat16* dqkv;       // [N, S]

  static Activations Carve(Carver& carver, const audit::ModelConfig& config,
                           audit::Precision precision, int64_t windows, bool recompute);
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_MODEL_ACTIVATIONS_H_
