// SPDX-License-Identifier: Apache-2.0
//
// Everything that a step reads and changes: parameters, both moments of Adam, and the small things
// (step, consumed tokens, data-stream cursor, spike protocol, chain). All of it is committed to by
// the chain of step records. How it lies in checkpoints is state/checkpoint.h.
#ifndef LOCKSTEP_ENGINE_STATE_TRAIN_STATE_H_
#define LOCKSTEP_ENGINE_STATE_TRAIN_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "audit/step_record.h"
#include "base/sha256.h"
#include "engine/backend/backend.h"
#include "engine/data/cursor.h"
#include "engine/model/parameters.h"
#include "engine/state/flat_array.h"

namespace lockstep::engine {

// One hash for each chunk of all tensors (audit/state_tree.h), and their roots.
struct StateLeaves {
  std::vector<Digest> parameters;
  std::vector<Digest> first_moment;
  std::vector<Digest> second_moment;
};
struct StateRoots {
  Digest parameters;
  Digest first_moment;
  Digest second_moment;
  bool operator==(const StateRoots&) const = default;
};

// The three sets of tensors that checkpoints hold and roots commit to.
enum class StatePart { kParameters, kFirstMoment, kSecondMoment };

class TrainState {
 public:
  // spill_folder: where moments and master parameters go to files; empty: they stay in memory.
  // `layout` must outlive the state. The tensors are zeros until Initialize or a checkpoint fills
  // them.
  static absl::StatusOr<std::unique_ptr<TrainState>> Create(Backend& backend,
                                                            const audit::RunManifest& manifest,
                                                            const ParameterLayout& layout,
                                                            const std::string& spill_folder);

  // The state before step 0 of a run without a parent: initial parameters, zero moments, the
  // stream's beginning, the genesis chain.
  absl::Status Initialize(const audit::RunManifest& manifest, const StreamCursor& cursor);

  // The parameters as the model reads them: the stored ones if they are bf16, else their rounding.
  ParametersView parameters() const { return {working_.as<BFloat16>(), &layout_}; }
  BFloat16* working() const { return working_.as<BFloat16>(); }
  // The parameters as f32; null if they are stored as bf16.
  FlatArray* master() const { return master_.get(); }
  FlatArray& first_moment() const { return *first_moment_; }
  FlatArray& second_moment() const { return *second_moment_; }
  const ParameterLayout& layout() const { return layout_; }

  // A piece of one part as it is stored: bf16 or f32 elements, until the next call. After a change,
  // Store; of f32 parameters that also makes the working copy.
  absl::StatusOr<void*> Load(StatePart part, const Piece& piece);
  absl::Status Store(StatePart part, const Piece& piece);
  int64_t ElementBytes(StatePart part) const {
    return part == StatePart::kParameters && master_ == nullptr ? 2 : 4;
  }

  // The leaves of a piece that was loaded, into their places.
  void HashPiece(StatePart part, const Piece& piece, const void* data);
  absl::Status HashAll();
  StateRoots Roots() const;
  const StateLeaves& leaves() const { return leaves_; }

  uint64_t step = 0;     // the next one's number
  uint64_t tokens = 0;   // consumed
  uint64_t updates = 0;  // of the parameters
  StreamCursor cursor;
  audit::SpikeState spike;
  Digest chain;

 private:
  TrainState(Backend& backend, const ParameterLayout& layout)
      : backend_(backend), layout_(layout) {}
  std::vector<Digest>& LeavesOf(StatePart part);

  Backend& backend_;
  const ParameterLayout& layout_;
  Buffer working_;  // [flat_elements] bf16
  std::unique_ptr<FlatArray> master_;
  std::unique_ptr<FlatArray> first_moment_;
  std::unique_ptr<FlatArray> second_moment_;
  StateLeaves leaves_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_TRAIN_STATE_H_
