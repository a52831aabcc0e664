// SPDX-License-Identifier: Apache-2.0
//
// The transcript of a step: what its computation passed through, one leaf for each micro-batch of
// each logical rank. Only the root is published. Whoever replayed the step can open any leaf, and
// whoever copied the published root cannot; and a dispute is narrowed down a leaf to one layer.
// Format: docs/step_record.md.
#ifndef LOCKSTEP_AUDIT_TRANSCRIPT_H_
#define LOCKSTEP_AUDIT_TRANSCRIPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep::audit {

// The digests are Merkle roots over pieces of 65,536 bytes (base/merkle.h).
struct TranscriptLeaf {
  uint32_t rank = 0;
  uint32_t micro_batch = 0;       // of the rank, in its order
  Digest losses;                  // cross-entropy of each token, [N] f32
  Digest z_losses;                // likewise
  std::vector<Digest> residual;   // residual stream before each layer and at the end, [N, C] bf16
  std::vector<Digest> dresidual;  // its gradient there
  bool operator==(const TranscriptLeaf&) const = default;
};

inline constexpr size_t kTranscriptLayersMax = 4096;

std::string EncodeTranscriptLeaf(const TranscriptLeaf& leaf);

// Accepts exactly what EncodeTranscriptLeaf writes. Untrusted input; DataLoss gives the offset.
absl::StatusOr<TranscriptLeaf> DecodeTranscriptLeaf(ByteSpan bytes);

// RFC 6962 over the encoded leaves, ranks ascending, micro-batches ascending.
Digest TranscriptRoot(const std::vector<TranscriptLeaf>& leaves);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_TRANSCRIPT_H_
