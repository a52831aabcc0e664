// SPDX-License-Identifier: Apache-2.0
//
// Algorithm 1's loop body, and the arrays it needs.
#include "engine/reduce/gradient_reducer.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace lockstep::engine {

GradientReducer::GradientReducer(Backend& backend, const ParameterLayout& layout,
                                 const audit::Topology& topology, std::string spill_folder)
    : backend_(backend),
      layout_(layout),
      topology_(topology),
      spill_folder_(std::move(spill_folder)),
      pieces_(layout.Pieces(/*with_statistics=*/true)),
      replicas_(Adder{this}) {}

int64_t GradientReducer::PartialsMax(const audit::Topology& topology) {
  if (topology.ranks() == 1) return 0;
  // Before the last replica's push the fold holds a block for each one bit of the count so far.
  int64_t blocks = 0;
  for (int64_t replica = 0; replica < topology.replicas; ++replica) {
    blocks = std::max<int64_t>(blocks, std::popcount(static_cast<uint64_t>(replica)));
  }
  return blocks + 1;  // and the sum over the shards
}

void GradientReducer::Restart() {
  replicas_.Clear();
  shard_ = 0;
  for (Array* array : {&rank_, &shards_, &result_}) {
    if (*array != nullptr) Recycle(std::move(*array));
  }
}

absl::StatusOr<float*> GradientReducer::BeginRank() {
  LOCKSTEP_ASSIGN_OR_RETURN(rank_, Take(/*spilled=*/false));
  return rank_->flat();
}

absl::Status GradientReducer::EndRank() {
  if (shard_ == 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(shards_, Partial(std::move(rank_)));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(AddInto(*shards_, *rank_));
    Recycle(std::move(rank_));
  }
  if (++shard_ < topology_.shards) return absl::OkStatus();
  shard_ = 0;
  LOCKSTEP_RETURN_IF_ERROR(Average(*shards_, topology_.shards));
  return replicas_.Push(std::move(shards_));
}

absl::StatusOr<FlatArray*> GradientReducer::Finish() {
  LOCKSTEP_ASSIGN_OR_RETURN(result_, replicas_.Result());
  LOCKSTEP_RETURN_IF_ERROR(Average(*result_, topology_.replicas));
  return result_.get();
}

// A rank's gradient as a partial sum: itself, or a copy of it in a file.
absl::StatusOr<GradientReducer::Array> GradientReducer::Partial(Array rank) {
  if (spill_folder_.empty() || topology_.ranks() == 1) return rank;
  LOCKSTEP_ASSIGN_OR_RETURN(Array partial, Take(/*spilled=*/true));
  for (const Piece& piece : pieces_) {
    LOCKSTEP_RETURN_IF_ERROR(partial->Put(piece, rank->flat() + piece.offset));
  }
  Recycle(std::move(rank));
  return partial;
}

absl::StatusOr<GradientReducer::Array> GradientReducer::Take(bool spilled) {
  for (Array& array : free_) {
    if (array->in_memory() == spilled) continue;
    Array taken = std::move(array);
    std::swap(array, free_.back());
    free_.pop_back();
    return taken;
  }
  return spilled ? FlatArray::Spilled(backend_, layout_, spill_folder_)
                 : FlatArray::InMemory(backend_, layout_);
}

void GradientReducer::Recycle(Array array) { free_.push_back(std::move(array)); }

absl::Status GradientReducer::AddInto(FlatArray& sum, FlatArray& part) {
  for (const Piece& piece : pieces_) {
    LOCKSTEP_ASSIGN_OR_RETURN(float* const acc, sum.Load(piece));
    LOCKSTEP_ASSIGN_OR_RETURN(const float* const x, part.Load(piece));
    backend_.Run(kernels::AddIntoArgs{.acc = acc, .x = x, .count = piece.count});
    LOCKSTEP_RETURN_IF_ERROR(sum.Store(piece));
  }
  return absl::OkStatus();
}

absl::Status GradientReducer::Average(FlatArray& sum, int64_t count) {
  if (count == 1) return absl::OkStatus();  // a product with 1 changes no bit
  const float scale = 1.0f / static_cast<float>(count);
  for (const Piece& piece : pieces_) {
    LOCKSTEP_ASSIGN_OR_RETURN(float* const x, sum.Load(piece));
    backend_.Run(kernels::ScaleArgs{.x = x, .count = piece.count, .scale = scale});
    LOCKSTEP_RETURN_IF_ERROR(sum.Store(piece));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::engine
