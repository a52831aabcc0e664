// SPDX-License-Identifier: Apache-2.0
//
// From the gradients of the logical ranks to that of the step (the paper's Algorithm 1): shards are
// added ascending and averaged, replicas folded (tree_fold.h) and averaged. Averages multiply by a
// reciprocal rounded to binary32. One rank's gradient is in memory, the partial sums too or in
// files.
#ifndef LOCKSTEP_ENGINE_REDUCE_GRADIENT_REDUCER_H_
#define LOCKSTEP_ENGINE_REDUCE_GRADIENT_REDUCER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/model/parameters.h"
#include "engine/reduce/tree_fold.h"
#include "engine/state/flat_array.h"

namespace lockstep::engine {

class GradientReducer {
 public:
  // spill_folder: where partial sums go to files; empty: they stay in memory.
  GradientReducer(Backend& backend, const ParameterLayout& layout, const audit::Topology& topology,
                  std::string spill_folder);

  // Arrays that are alive at once, at most, besides the rank's own.
  static int64_t PartialsMax(const audit::Topology& topology);

  // Forgets a reduction that was not finished.
  void Restart();

  // Rank after rank, in their order: the memory for the rank's gradient, and that it is there.
  absl::StatusOr<float*> BeginRank();
  absl::Status EndRank();

  // After the last: the step's gradient, statistics with it. The array is the reducer's, which may
  // use it again after the next Restart.
  absl::StatusOr<FlatArray*> Finish();

 private:
  using Array = std::unique_ptr<FlatArray>;
  struct Adder {
    GradientReducer* reducer;
    absl::StatusOr<Array> operator()(Array left, Array right) const {
      LOCKSTEP_RETURN_IF_ERROR(reducer->AddInto(*left, *right));
      reducer->Recycle(std::move(right));
      return left;
    }
  };

  absl::StatusOr<Array> Take(bool spilled);
  void Recycle(Array array);
  absl::Status AddInto(FlatArray& sum, FlatArray& part);
  absl::Status Average(FlatArray& sum, int64_t count);
  absl::StatusOr<Array> Partial(Array rank);

  Backend& backend_;
  const ParameterLayout& layout_;
  const audit::Topology topology_;
  const std::string spill_folder_;
  const std::vector<Piece> pieces_;
  int64_t shard_ = 0;  // of the present rank
  Array rank_;         // the present rank's gradient
  Array shards_;       // the sum over its replica's shards so far
  TreeFold<Array, Adder> replicas_;
  Array result_;
  std::vector<Array> free_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_REDUCE_GRADIENT_REDUCER_H_
