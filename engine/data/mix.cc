// SPDX-License-Identifier: Apache-2.0
//
// The mix of sources. See mix.h.
#include "engine/data/mix.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "kernels/random/random.h"

namespace lockstep::engine {

std::vector<uint64_t> MixWeights(const CorpusManifest& manifest) {
  absl::uint128 shares = 0;  // at most 4096 * 2^56
  for (const SourceEntry& source : manifest.sources) {
    if (source.documents > 0) shares += source.share;
  }
  std::vector<uint64_t> weights;
  for (const SourceEntry& source : manifest.sources) {
    absl::uint128 weight = 0;
    if (source.documents > 0 && source.share > 0) {
      weight = (absl::uint128(source.share) << 63) / shares;  // below 2^120 before the division
      weight = weight * source.documents / source.tokens;     // below 2^63 * 2^48
    }
    weights.push_back(absl::Uint128Low64(weight));
  }
  return weights;
}

absl::StatusOr<SourceMix> SourceMix::Create(const CorpusManifest& manifest, uint64_t seed) {
  std::vector<uint64_t> ends = MixWeights(manifest);
  for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  if (ends.empty() || ends.back() == 0) {
    return absl::FailedPreconditionError(
        "the corpus has no source with documents and a share above 0, so no stream");
  }
  return SourceMix(seed, std::move(ends));
}

SourceMix::SourceMix(uint64_t seed, std::vector<uint64_t> ends)
    : seed_(seed), stream_(kernels::StreamOf("data/mix")), ends_(std::move(ends)) {}

uint32_t SourceMix::SourceOfDraw(uint64_t n) const {
  const uint64_t u = kernels::RandomBelow(seed_, stream_, n, ends_.back());
  return static_cast<uint32_t>(std::upper_bound(ends_.begin(), ends_.end(), u) - ends_.begin());
}

}  // namespace lockstep::engine
