// SPDX-License-Identifier: Apache-2.0
//
// The parameters of the model in canonical order: names, shapes, and where each lies in one flat
// array. Gradients, moments and parameters share the layout. A tensor's place in the order is its
// id in state trees and checkpoints.
#ifndef LOCKSTEP_ENGINE_MODEL_PARAMETERS_H_
#define LOCKSTEP_ENGINE_MODEL_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "audit/run_manifest.h"
#include "audit/state_tree.h"
#include "engine/backend/backend.h"
#include "kernels/elements.h"

namespace lockstep::engine {

struct LayerTensors {
  int64_t attention_norm;    // [C]
  int64_t qkv;               // [S, C], S = (Hq + 2 Hkv) Dh: queries, keys, values
  int64_t attention_output;  // [C, Hq Dh]
  int64_t mlp_norm;          // [C]
  int64_t gate_up;           // [2 F, C]: gate, up
  int64_t down;              // [C, F]
};

struct Piece;

class ParameterLayout {
 public:
  explicit ParameterLayout(const audit::ModelConfig& config);

  int64_t embedding() const { return 0; }       // [V, C]
  int64_t embedding_norm() const { return 1; }  // [C]
  const LayerTensors& layer(int64_t l) const { return layers_[l]; }
  int64_t final_norm() const { return final_norm_; }  // [C]
  int64_t head() const { return head_; }              // [V, C]

  const audit::TensorTable& table() const { return table_; }
  int64_t tensors() const { return static_cast<int64_t>(table_.tensors().size()); }
  int64_t elements(int64_t tensor) const { return table_.tensors()[tensor].elements; }
  int64_t elements() const { return table_.elements(); }  // of all tensors
  // A tensor's first element in a flat array, a multiple of 64; the elements between are zero.
  int64_t offset(int64_t tensor) const { return offsets_[tensor]; }
  // A piece's first chunk among those of all tensors.
  int64_t first_chunk(const Piece& piece) const;
  // Two more f32 follow the tensors in a gradient: the losses, which are reduced as gradients are.
  int64_t statistics_offset() const { return statistics_; }
  int64_t flat_elements() const { return statistics_ + 64; }

  // Norm gains: 1 at first, no weight decay.
  bool is_norm(int64_t tensor) const { return table_.tensors()[tensor].shape.size() == 1; }
  bool decays(int64_t tensor) const { return !is_norm(tensor) && tensor != embedding(); }
  int64_t elements_max() const { return elements_max_; }  // of the largest tensor

  // All tensors, in order; with_statistics adds those at the end.
  std::vector<Piece> Pieces(bool with_statistics) const;

 private:
  int64_t Add(const std::string& name, std::vector<int64_t> shape);

  audit::TensorTable table_;
  std::vector<LayerTensors> layers_;
  std::vector<int64_t> offsets_;
  int64_t final_norm_ = 0;
  int64_t head_ = 0;
  int64_t statistics_ = 0;
  int64_t elements_max_ = 0;
};

// Some elements of one tensor, whole chunks of a state tree but for the tensor's end: what
// element-wise work on all tensors is cut into, so that arrays need not be in memory as a whole.
// tensor = -1: the statistics.
struct Piece {
  int64_t tensor;
  int64_t first;  // element of the tensor
  int64_t count;
  int64_t offset;  // of `first` in a flat array
};
inline constexpr int64_t kPieceElements = int64_t{128} * audit::kChunkElements;

// The leaves of a piece into their places among those of all tensors. data: its elements.
void HashChunks(Backend& backend, const ParameterLayout& layout, const Piece& piece,
                const void* data, int64_t element_bytes, std::vector<Digest>& leaves);

// The parameters as the model reads them: one flat bf16 array.
struct ParametersView {
  const BFloat16* flat;
  const ParameterLayout* layout;

  const BFloat16* operator[](int64_t tensor) const { return flat + layout->offset(tensor); }
};

// The initial values of the elements of a piece in bf16 or f32, the former the latter's rounding:
// norm gains 1, all else truncated normal from the counter stream named "init/" + the tensor's
// name.
void InitializePiece(Backend& backend, const ParameterLayout& layout, float init_std, uint64_t seed,
                     const Piece& piece, kernels::FloatElements out);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_MODEL_PARAMETERS_H_
