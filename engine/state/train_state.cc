// SPDX-License-Identifier: Apache-2.0
//
// The state's arrays, its beginning, and its roots.
#include "engine/state/train_state.h"

#include <span>

#include "audit/state_tree.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<std::unique_ptr<TrainState>> TrainState::Create(Backend& backend,
                                                               const audit::RunManifest& manifest,
                                                               const ParameterLayout& layout,
                                                               const std::string& spill_folder) {
  const auto create = [&]() -> absl::StatusOr<std::unique_ptr<FlatArray>> {
    return spill_folder.empty() ? FlatArray::InMemory(backend, layout)
                                : FlatArray::Spilled(backend, layout, spill_folder);
  };
  std::unique_ptr<TrainState> state(new TrainState(backend, layout));
  LOCKSTEP_ASSIGN_OR_RETURN(state->working_,
                            Buffer::Create(backend, layout.flat_elements() * sizeof(BFloat16)),
                            "parameters");
  if (manifest.parameter_storage == audit::ParameterStorage::kF32) {
    LOCKSTEP_ASSIGN_OR_RETURN(state->master_, create(), "parameters");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(state->first_moment_, create(), "first moments");
  LOCKSTEP_ASSIGN_OR_RETURN(state->second_moment_, create(), "second moments");
  for (std::vector<Digest>* leaves :
       {&state->leaves_.parameters, &state->leaves_.first_moment, &state->leaves_.second_moment}) {
    leaves->resize(layout.table().chunks());
  }
  return state;
}

absl::Status TrainState::Initialize(const audit::RunManifest& manifest, const StreamCursor& start) {
  const auto init_std = static_cast<float>(manifest.model.init_std);
  for (const Piece& piece : layout_.Pieces(/*with_statistics=*/false)) {
    LOCKSTEP_ASSIGN_OR_RETURN(void* const data, Load(StatePart::kParameters, piece));
    const kernels::FloatElements out = master_ == nullptr
                                           ? kernels::FloatElements(static_cast<BFloat16*>(data))
                                           : kernels::FloatElements(static_cast<float*>(data));
    InitializePiece(backend_, layout_, init_std, manifest.seed, piece, out);
    LOCKSTEP_RETURN_IF_ERROR(Store(StatePart::kParameters, piece));
  }
  LOCKSTEP_RETURN_IF_ERROR(HashAll());
  step = 0;
  tokens = 0;
  updates = 0;
  cursor = start;
  spike = {};
  const StateRoots roots = Roots();
  chain = audit::GenesisChain(audit::RunIdOf(manifest), roots.parameters, roots.first_moment,
                              roots.second_moment, CursorDigest(cursor));
  return absl::OkStatus();
}

absl::StatusOr<void*> TrainState::Load(StatePart part, const Piece& piece) {
  if (part == StatePart::kParameters && master_ == nullptr) return working() + piece.offset;
  FlatArray& array = part == StatePart::kParameters    ? *master_
                     : part == StatePart::kFirstMoment ? *first_moment_
                                                       : *second_moment_;
  LOCKSTEP_ASSIGN_OR_RETURN(float* const data, array.Load(piece));
  return data;
}

absl::Status TrainState::Store(StatePart part, const Piece& piece) {
  switch (part) {
    case StatePart::kParameters: {
      if (master_ == nullptr) return absl::OkStatus();
      const float* data = master_->in_memory() ? master_->flat() + piece.offset : master_->flat();
      backend_.Run(kernels::ConvertBf16Args{
          .out = working() + piece.offset, .x = data, .count = piece.count});
      return master_->Store(piece);
    }
    case StatePart::kFirstMoment:
      return first_moment_->Store(piece);
    case StatePart::kSecondMoment:
      return second_moment_->Store(piece);
  }
  return absl::OkStatus();
}

std::vector<Digest>& TrainState::LeavesOf(StatePart part) {
  return part == StatePart::kParameters    ? leaves_.parameters
         : part == StatePart::kFirstMoment ? leaves_.first_moment
                                           : leaves_.second_moment;
}

void TrainState::HashPiece(StatePart part, const Piece& piece, const void* data) {
  HashChunks(backend_, layout_, piece, data, ElementBytes(part), LeavesOf(part));
}

absl::Status TrainState::HashAll() {
  for (const StatePart part :
       {StatePart::kParameters, StatePart::kFirstMoment, StatePart::kSecondMoment}) {
    for (const Piece& piece : layout_.Pieces(/*with_statistics=*/false)) {
      LOCKSTEP_ASSIGN_OR_RETURN(const void* const data, Load(part, piece));
      HashPiece(part, piece, data);
    }
  }
  return absl::OkStatus();
}

StateRoots TrainState::Roots() const {
  return {.parameters = MerkleRoot(leaves_.parameters),
          .first_moment = MerkleRoot(leaves_.first_moment),
          .second_moment = MerkleRoot(leaves_.second_moment)};
}

}  // namespace lockstep::engine
