// SPDX-License-Identifier: Apache-2.0
//
// Leaves as bytes, and their root.
#include "audit/transcript.h"

#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::audit {

std::string EncodeTranscriptLeaf(const TranscriptLeaf& leaf) {
  ByteWriter writer;
  writer.WriteU32(leaf.rank);
  writer.WriteU32(leaf.micro_batch);
  writer.WriteFixed(leaf.losses.bytes);
  writer.WriteFixed(leaf.z_losses.bytes);
  writer.WriteU32(static_cast<uint32_t>(leaf.residual.size()));
  for (const Digest& digest : leaf.residual) writer.WriteFixed(digest.bytes);
  for (const Digest& digest : leaf.dresidual) writer.WriteFixed(digest.bytes);
  return writer.Take();
}

absl::StatusOr<TranscriptLeaf> DecodeTranscriptLeaf(ByteSpan bytes) {
  const auto parse = [&]() -> absl::StatusOr<TranscriptLeaf> {
    ByteReader reader(bytes);
    const auto read_digest = [&](absl::string_view what) -> absl::StatusOr<Digest> {
      LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan span, reader.ReadFixed(what, 32));
      return Digest::FromBytes(span);
    };
    TranscriptLeaf leaf;
    LOCKSTEP_ASSIGN_OR_RETURN(leaf.rank, reader.ReadU32("rank"));
    LOCKSTEP_ASSIGN_OR_RETURN(leaf.micro_batch, reader.ReadU32("micro_batch"));
    LOCKSTEP_ASSIGN_OR_RETURN(leaf.losses, read_digest("losses"));
    LOCKSTEP_ASSIGN_OR_RETURN(leaf.z_losses, read_digest("z_losses"));
    LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t boundaries, reader.ReadU32("boundaries"));
    if (boundaries == 0 || boundaries > kTranscriptLayersMax + 1) {
      return absl::DataLossError(absl::StrCat("expected 1 to ", kTranscriptLayersMax + 1,
                                              " boundaries at offset ", reader.offset() - 4,
                                              "; found ", boundaries));
    }
    for (auto* digests : {&leaf.residual, &leaf.dresidual}) {
      for (uint32_t i = 0; i < boundaries; ++i) {
        LOCKSTEP_ASSIGN_OR_RETURN(digests->emplace_back(), read_digest("boundary"));
      }
    }
    LOCKSTEP_RETURN_IF_ERROR(reader.ExpectEnd());
    return leaf;
  };
  absl::StatusOr<TranscriptLeaf> leaf = parse();
  if (leaf.ok()) return leaf;
  return absl::DataLossError(absl::StrCat("transcript leaf: ", leaf.status().message()));
}

Digest TranscriptRoot(const std::vector<TranscriptLeaf>& leaves) {
  std::vector<Digest> hashes;
  hashes.reserve(leaves.size());
  for (const TranscriptLeaf& leaf : leaves) {
    const std::string bytes = EncodeTranscriptLeaf(leaf);
    hashes.push_back(
        MerkleLeafHash(ByteSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())));
  }
  return MerkleRoot(hashes);
}

}  // namespace lockstep::audit
