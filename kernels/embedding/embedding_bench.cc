// SPDX-License-Identifier: Apache-2.0
//
// The embedding against the memory's rate.
#include <cstdint>
#include <vector>

#include "bench/harness.h"
#include "kernels/context.h"
#include "kernels/embedding/embedding.h"

namespace lockstep::kernels {
namespace {

// About 64 MiB a stream: outside the cache.
LOCKSTEP_BENCH(embedding, "embedding gather and ordered scatter, against the memory's rate", b) {
  constexpr int64_t kVocab = 16384;
  constexpr int64_t kCols = 1024;
  constexpr int64_t kTokens = 2 * kVocab;  // so that dy has the bytes of the f32 gradient
  constexpr int64_t kBytes = kTokens * kCols * static_cast<int64_t>(sizeof(BFloat16));
  std::vector<int32_t> ids(kTokens);
  uint32_t random = 1;
  for (int32_t& id : ids) {
    random = random * 1664525u + 1013904223u;
    id = static_cast<int32_t>((random >> 8) % kVocab);
  }
  std::vector<int32_t> starts(kVocab + 1);
  std::vector<int32_t> positions(kTokens);
  BuildTokenIndex(ids.data(), kTokens, kVocab, starts.data(), positions.data());
  std::vector<BFloat16> table(kVocab * kCols, BFloat16{0x3f80});
  std::vector<BFloat16> activations(kTokens * kCols, BFloat16{0x3f80});
  std::vector<float> dtable(kVocab * kCols);
  b.CompareWithMemory("gather", 1, 1, kBytes, [&](const Context& context) {
    Run(context, EmbeddingGatherArgs{activations.data(), table.data(), ids.data(), kTokens, kCols});
  });
  b.CompareWithMemory("scatter", 1, 1, kBytes, [&](const Context& context) {
    Run(context, EmbeddingScatterArgs{dtable.data(), activations.data(), starts.data(),
                                      positions.data(), kVocab, kCols});
  });
}

}  // namespace
}  // namespace lockstep::kernels
