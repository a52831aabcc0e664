// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a checkpoint's file, as the run's model says they must be: for the readers and the
// writer in this folder.
#ifndef LOCKSTEP_ENGINE_STATE_CHECKPOINT_TENSORS_H_
#define LOCKSTEP_ENGINE_STATE_CHECKPOINT_TENSORS_H_

#include <span>

#include "absl/status/status.h"
#include "audit/state_tree.h"
#include "engine/model/parameters.h"
#include "engine/state/safetensors.h"

namespace lockstep::engine {

// All tensors of the table, in its order, in one type.
SafetensorsHeader HeaderOf(const audit::TensorTable& table, TensorType type);

// That the file has exactly these tensors. DataLoss names the first that is another.
absl::Status CheckHeader(const SafetensorsFile& file, const audit::TensorTable& table,
                         TensorType type);

// The bytes of a piece, of a file whose header was checked; out has room for exactly them.
absl::Status ReadPiece(const SafetensorsFile& file, const Piece& piece, std::span<char> out);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_CHECKPOINT_TENSORS_H_
