// SPDX-License-Identifier: Apache-2.0
//
// Which source the next document comes from: weights in integers, one draw a document.
// docs/stream.md defines both.
#ifndef LOCKSTEP_ENGINE_DATA_MIX_H_
#define LOCKSTEP_ENGINE_DATA_MIX_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/manifest.h"

namespace lockstep::engine {

// Weights of the sources, token share over mean document length. With S the sum of the shares of
// sources that have documents:
//   w_i = floor(floor(2^63 * share_i / S) * documents_i / tokens_i),
// in exact integers; 0 for a source without documents. Their sum is at most 2^63.
std::vector<uint64_t> MixWeights(const CorpusManifest& manifest);

class SourceMix {
 public:
  // FailedPrecondition if every weight is 0.
  static absl::StatusOr<SourceMix> Create(const CorpusManifest& manifest, uint64_t seed);

  // Source of draw n: with u = RandomBelow(seed, StreamOf("data/mix"), n, sum of weights), the
  // first i for which w_0 + ... + w_i > u.
  uint32_t SourceOfDraw(uint64_t n) const;

  bool HasWeight(uint32_t source) const {
    return ends_[source] > (source == 0 ? 0 : ends_[source - 1]);
  }

 private:
  SourceMix(uint64_t seed, std::vector<uint64_t> ends);
  uint64_t seed_;
  uint64_t stream_;
  std::vector<uint64_t> ends_;  // w_0 + ... + w_i
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_MIX_H_
