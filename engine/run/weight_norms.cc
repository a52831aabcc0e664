// SPDX-License-Identifier: Apache-2.0
//
// Sums of squares of widened pieces.
#include "engine/run/weight_norms.h"

#include <algorithm>
#include <cmath>

#include "audit/state_tree.h"
#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<std::vector<double>> WeightNorms(Backend& backend, const TrainState& state) {
  const ParameterLayout& layout = state.layout();
  const int64_t widest = std::min(layout.elements_max(), kPieceElements);
  LOCKSTEP_ASSIGN_OR_RETURN(const Buffer wide, Buffer::Create(backend, widest * sizeof(float)));
  LOCKSTEP_ASSIGN_OR_RETURN(const Buffer totals,
                            Buffer::Create(backend, audit::ChunksOf(widest) * sizeof(float)));
  std::vector<float> host(audit::ChunksOf(widest));
  std::vector<double> squares(layout.tensors());
  for (const Piece& piece : layout.Pieces(/*with_statistics=*/false)) {
    backend.Run(kernels::WidenF32Args{.out = wide.as<float>(),
                                      .x = state.parameters().flat + piece.offset,
                                      .count = piece.count});
    backend.Run(kernels::SumOfSquaresArgs{
        .totals = totals.as<float>(), .x = wide.as<float>(), .count = piece.count});
    const int64_t chunks = audit::ChunksOf(piece.count);
    backend.CopyOut(host.data(), totals.data(), chunks * sizeof(float));
    for (int64_t c = 0; c < chunks; ++c) squares[piece.tensor] += host[c];
  }
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

}  // namespace lockstep::engine
