// SPDX-License-Identifier: Apache-2.0
//
// The order in which the replicas' gradients are added: a fold by binary carry, which takes each
// replica's part as it comes and keeps at most one part for each power of two (the paper's
// Algorithm 2). Of a count that is no power of two the blocks left over are added largest first:
// seven replicas give (((g0+g1)+(g2+g3))+(g4+g5))+g6. It knows nothing of what a part is.
#ifndef LOCKSTEP_ENGINE_REDUCE_TREE_FOLD_H_
#define LOCKSTEP_ENGINE_REDUCE_TREE_FOLD_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"

namespace lockstep::engine {

// Add: absl::StatusOr<Part>(Part left, Part right), left of the lower replicas.
template <class Part, class Add>
class TreeFold {
 public:
  explicit TreeFold(Add add) : add_(std::move(add)) {}

  // The part of the next replica.
  absl::Status Push(Part part) {
    int level = 0;
    while (!stack_.empty() && stack_.back().level == level) {
      LOCKSTEP_ASSIGN_OR_RETURN(part, add_(std::move(stack_.back().part), std::move(part)));
      stack_.pop_back();
      ++level;
    }
    stack_.push_back({level, std::move(part)});
    return absl::OkStatus();
  }

  // Of all parts, at least one; the fold is then empty.
  absl::StatusOr<Part> Result() {
    Part sum = std::move(stack_.front().part);
    for (size_t i = 1; i < stack_.size(); ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(sum, add_(std::move(sum), std::move(stack_[i].part)));
    }
    stack_.clear();
    return sum;
  }

  void Clear() { stack_.clear(); }

 private:
  struct Block {
    int level;  // of 2^level replicas
    Part part;
  };

  Add add_;
  std::vector<Block> stack_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_REDUCE_TREE_FOLD_H_
