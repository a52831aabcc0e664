// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: transcript leaves. What is accepted is written back to the same bytes.
#include <cstddef>
#include <cstdint>

#include "audit/transcript.h"
#include "base/bytes.h"
#include "base/logging.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::audit;
  const ByteSpan input(data, size);
  const auto leaf = DecodeTranscriptLeaf(input);
  if (!leaf.ok()) return 0;
  LOCKSTEP_CHECK(EncodeTranscriptLeaf(*leaf) == AsChars(input));
  LOCKSTEP_CHECK(leaf->residual.size() == leaf->dresidual.size());
  LOCKSTEP_CHECK(leaf->residual.size() <= kTranscriptLayersMax + 1);
  return 0;
}
