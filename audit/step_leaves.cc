// SPDX-License-Identifier: Apache-2.0
//
// Leaves as bytes, and against their record.
#include "audit/step_leaves.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr uint8_t kMagic[4] = {'L', 'K', 'S', 'L'};
constexpr uint32_t kVersion = 1;
constexpr size_t kTranscriptLeafBytesMax = size_t{1} << 20;

absl::StatusOr<StepLeaves> Parse(ByteReader& reader) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan magic, reader.ReadFixed("magic", sizeof(kMagic)));
  if (!std::equal(magic.begin(), magic.end(), kMagic)) {
    return absl::DataLossError("expected the bytes \"LKSL\" at offset 0");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t version, reader.ReadU32("version"));
  if (version != kVersion) {
    return absl::DataLossError(
        absl::StrCat("expected version ", kVersion, " at offset 4; found ", version));
  }
  StepLeaves leaves;
  LOCKSTEP_ASSIGN_OR_RETURN(leaves.step, reader.ReadU64("step"));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t chunks, reader.ReadU64("chunks"));
  if (chunks > reader.remaining() / (4 * 32)) {
    return absl::DataLossError(absl::StrCat("expected at most ", reader.remaining() / (4 * 32),
                                            " chunks in what is left at offset ", reader.offset(),
                                            "; found ", chunks));
  }
  for (auto* digests :
       {&leaves.parameters, &leaves.first_moment, &leaves.second_moment, &leaves.gradient}) {
    digests->reserve(chunks);
    for (uint64_t i = 0; i < chunks; ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan digest, reader.ReadFixed("chunk", 32));
      digests->push_back(*Digest::FromBytes(digest));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t micro_batches, reader.ReadU32("micro-batches"));
  for (uint32_t i = 0; i < micro_batches; ++i) {
    const size_t offset = reader.offset();
    LOCKSTEP_ASSIGN_OR_RETURN(
        const ByteSpan bytes,
        reader.ReadLengthPrefixed("transcript leaf", kTranscriptLeafBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(leaves.transcript.emplace_back(), DecodeTranscriptLeaf(bytes),
                              "offset ", offset);
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.ExpectEnd());
  return leaves;
}

}  // namespace

std::string EncodeStepLeaves(const StepLeaves& leaves) {
  ByteWriter writer;
  writer.WriteFixed(kMagic);
  writer.WriteU32(kVersion);
  writer.WriteU64(leaves.step);
  writer.WriteU64(leaves.parameters.size());
  for (const auto* digests :
       {&leaves.parameters, &leaves.first_moment, &leaves.second_moment, &leaves.gradient}) {
    for (const Digest& digest : *digests) writer.WriteFixed(digest.bytes);
  }
  writer.WriteU32(static_cast<uint32_t>(leaves.transcript.size()));
  for (const TranscriptLeaf& leaf : leaves.transcript) {
    writer.WriteLengthPrefixed(AsBytes(EncodeTranscriptLeaf(leaf)));
  }
  return writer.Take();
}

absl::StatusOr<StepLeaves> DecodeStepLeaves(ByteSpan bytes) {
  ByteReader reader(bytes);
  absl::StatusOr<StepLeaves> leaves = Parse(reader);
  if (leaves.ok()) return leaves;
  return absl::DataLossError(absl::StrCat("leaves of a step: ", leaves.status().message()));
}

absl::Status CheckLeaves(const StepLeaves& leaves, const StepRecord& record) {
  if (leaves.step != record.step) {
    return absl::DataLossError(absl::StrCat("expected the leaves of step ", record.step,
                                            "; found those of step ", leaves.step));
  }
  const auto check = [&](absl::string_view what, const Digest& expected, const Digest& found) {
    if (expected == found) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("leaves of step ", record.step, ": expected the root ",
                                            expected.ToHex(), " of the record's ", what, "; found ",
                                            found.ToHex()));
  };
  LOCKSTEP_RETURN_IF_ERROR(check("parameters", record.parameters, MerkleRoot(leaves.parameters)));
  LOCKSTEP_RETURN_IF_ERROR(
      check("first moment", record.first_moment, MerkleRoot(leaves.first_moment)));
  LOCKSTEP_RETURN_IF_ERROR(
      check("second moment", record.second_moment, MerkleRoot(leaves.second_moment)));
  LOCKSTEP_RETURN_IF_ERROR(check("gradient", record.gradient, MerkleRoot(leaves.gradient)));
  return check("transcript", record.transcript, TranscriptRoot(leaves.transcript));
}

}  // namespace lockstep::audit
