// SPDX-License-Identifier: Apache-2.0
//
// The canonical order, and the first values.
#include "engine/model/parameters.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kAlignment = 64;  // elements

}  // namespace

ParameterLayout::ParameterLayout(const audit::ModelConfig& c) {
  Add("embedding", {c.vocab, c.width});
  Add("embedding_norm", {c.width});
  for (int64_t l = 0; l < c.layers; ++l) {
    const std::string layer = absl::StrCat("layers.", l, ".");
    LayerTensors tensors;
    tensors.attention_norm = Add(layer + "attention.norm", {c.width});
    tensors.qkv = Add(layer + "attention.qkv", {c.qkv_width(), c.width});
    tensors.attention_output = Add(layer + "attention.output", {c.width, c.query_width()});
    tensors.mlp_norm = Add(layer + "mlp.norm", {c.width});
    tensors.gate_up = Add(layer + "mlp.gate_up", {2 * c.ffn_width, c.width});
    tensors.down = Add(layer + "mlp.down", {c.width, c.ffn_width});
    layers_.push_back(tensors);
  }
  final_norm_ = Add("final_norm", {c.width});
  head_ = Add("head", {c.vocab, c.width});
}

int64_t ParameterLayout::Add(const std::string& name, std::vector<int64_t> shape) {
  table_.Add(name, std::move(shape));
  const int64_t elements = table_.tensors().back().elements;
  offsets_.push_back(statistics_);
  statistics_ += (elements + kAlignment - 1) / kAlignment * kAlignment;
  elements_max_ = std::max(elements_max_, elements);
  return tensors() - 1;
}

int64_t ParameterLayout::first_chunk(const Piece& piece) const {
  return table_.tensors()[piece.tensor].first_chunk + piece.first / audit::kChunkElements;
}

std::vector<Piece> ParameterLayout::Pieces(bool with_statistics) const {
  std::vector<Piece> pieces;
  for (int64_t t = 0; t < tensors(); ++t) {
    for (int64_t first = 0; first < elements(t); first += kPieceElements) {
      pieces.push_back({.tensor = t,
                        .first = first,
                        .count = std::min(kPieceElements, elements(t) - first),
                        .offset = offset(t) + first});
    }
  }
  if (with_statistics) {
    pieces.push_back({.tensor = -1, .first = 0, .count = 2, .offset = statistics_offset()});
  }
  return pieces;
}

void HashChunks(Backend& backend, const ParameterLayout& layout, const Piece& piece,
                const void* data, int64_t element_bytes, std::vector<Digest>& leaves) {
  backend.ChunkLeaves(
      {.data = data,
       .elements = piece.count,
       .element_bytes = element_bytes,
       .tensor = piece.tensor,
       .first_chunk = piece.first / audit::kChunkElements},
      std::span(leaves).subspan(layout.first_chunk(piece), audit::ChunksOf(piece.count)));
}

void InitializePiece(Backend& backend, const ParameterLayout& layout, float init_std, uint64_t seed,
                     const Piece& piece, kernels::FloatElements out) {
  const std::string& name = layout.table().tensors()[piece.tensor].name;
  const kernels::RandomSource source = {.seed = seed,
                                        .stream = kernels::StreamOf(absl::StrCat("init/", name)),
                                        .first = static_cast<uint64_t>(piece.first)};
  kernels::WithFloats(out, [&](auto* typed) {
    using T = std::remove_pointer_t<decltype(typed)>;
    if (layout.is_norm(piece.tensor)) {
      std::vector<T> ones(piece.count);
      for (T& one : ones) kernels::Store(&one, 1.0f);
      backend.CopyIn(typed, ones.data(), ones.size() * sizeof(T));
    } else if constexpr (std::is_same_v<T, float>) {
      backend.Run(kernels::TruncatedNormalFillF32Args{
          .out = typed, .count = piece.count, .sigma = init_std, .source = source});
    } else {
      backend.Run(kernels::TruncatedNormalFillBf16Args{
          .out = typed, .count = piece.count, .sigma = init_std, .source = source});
    }
  });
}

}  // namespace lockstep::engine
