// SPDX-License-Identifier: Apache-2.0
//
// Commitment, challenge, opening.
#include "audit/evidence/opening.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/evidence/dsse.h"
#include "audit/evidence/payload_fields.h"
#include "base/canonical_json.h"
#include "base/coding.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr size_t kLeafBytesMax = 65535;
constexpr size_t kProofMax = 64;
constexpr int64_t kLeavesMax = int64_t{1} << 40;
constexpr absl::string_view kIndexTag = "lockstep opening index 1";

std::string ChallengePae(const Digest& attestation) {
  return DssePae(kChallengePayloadType, AsChars(attestation.bytes));
}

Digest CommittedLeaf(const Digest& nonce, const Ed25519PublicKey& worker, ByteSpan leaf) {
  return MerkleLeafHash({nonce.bytes, worker.bytes, leaf});
}

}  // namespace

std::string EncodeOpening(const Opening& opening) {
  return EncodePayload({{"attestation", opening.attestation.ToHex()},
                        {"challenge", Base64Encode(opening.challenge)},
                        {"commitmentProof", WriteDigests(opening.commitment_proof)},
                        {"index", opening.index},
                        {"leaf", Base64Encode(AsBytes(opening.leaf))},
                        {"proof", WriteDigests(opening.proof)}});
}

absl::StatusOr<Opening> ParseOpening(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), "opening");
  JsonReader reader(json, "opening");
  Opening opening;
  opening.attestation = reader.Sha256Digest("attestation");
  const std::string challenge = ReadBase64(reader, "challenge", kEd25519SignatureBytes);
  if (challenge.size() == opening.challenge.size()) {
    std::copy(challenge.begin(), challenge.end(), opening.challenge.begin());
  } else if (reader.ok()) {
    reader.Fail("challenge", absl::StrCat(kEd25519SignatureBytes, " bytes"),
                absl::StrCat(challenge.size()));
  }
  opening.commitment_proof = ReadDigests(reader, "commitmentProof", kProofMax);
  opening.index = static_cast<uint64_t>(reader.Integer("index", 0, kLeavesMax));
  opening.leaf = ReadBase64(reader, "leaf", kLeafBytesMax);
  opening.proof = ReadDigests(reader, "proof", kProofMax);
  if (reader.ok()) {
    if (const auto leaf = DecodeTranscriptLeaf(AsBytes(opening.leaf)); !leaf.ok()) {
      reader.Fail("leaf", "a transcript leaf", leaf.status().message());
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return opening;
}

uint64_t TranscriptLeavesOf(const RunManifest& manifest, uint64_t tokens_before) {
  for (const BatchPhaseConfig& phase : manifest.batch) {
    if (static_cast<uint64_t>(phase.until_tokens) > tokens_before) {
      return static_cast<uint64_t>(phase.windows_per_step / manifest.topology.micro_batch);
    }
  }
  return 0;
}

Digest OpeningsDigest(const Digest& nonce, const Ed25519PublicKey& worker,
                      const std::vector<TranscriptLeaf>& leaves) {
  std::vector<Digest> hashes;
  hashes.reserve(leaves.size());
  for (const TranscriptLeaf& leaf : leaves) {
    hashes.push_back(CommittedLeaf(nonce, worker, AsBytes(EncodeTranscriptLeaf(leaf))));
  }
  return MerkleRoot(hashes);
}

Ed25519Signature MakeChallenge(const Ed25519PrivateKey& log_key, const Digest& attestation) {
  return log_key.Sign(AsBytes(ChallengePae(attestation)));
}

bool VerifyChallenge(const Ed25519PublicKey& log_key, const Digest& attestation,
                     const Ed25519Signature& challenge) {
  return VerifyEd25519(log_key, AsBytes(ChallengePae(attestation)), challenge);
}

std::vector<uint64_t> ChallengedIndices(const Ed25519Signature& challenge, uint64_t leaves,
                                        int count) {
  std::vector<uint64_t> indices;
  const uint64_t wanted = std::min(leaves, static_cast<uint64_t>(std::max(count, 0)));
  // 64 bits of a hash, reduced: off from even by less than leaves / 2^64. One that was drawn before
  // gives way to the next.
  for (uint64_t draw = 0; indices.size() < wanted; ++draw) {
    ByteWriter writer;
    writer.WriteU64(draw);
    const Digest hash = Sha256({AsBytes(kIndexTag), challenge, AsBytes(writer.bytes())});
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits |= uint64_t{hash.bytes[i]} << (8 * i);
    const uint64_t index = bits % leaves;
    if (std::find(indices.begin(), indices.end(), index) == indices.end()) {
      indices.push_back(index);
    }
  }
  return indices;
}

absl::StatusOr<Opening> MakeOpening(const Digest& attestation, const Ed25519Signature& challenge,
                                    const Digest& nonce, const Ed25519PublicKey& worker,
                                    const std::vector<TranscriptLeaf>& leaves, uint64_t index) {
  if (index >= leaves.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("opening: expected one of ", leaves.size(), " leaves; found leaf ", index));
  }
  MerkleTree published;
  MerkleTree committed;
  for (const TranscriptLeaf& leaf : leaves) {
    const std::string bytes = EncodeTranscriptLeaf(leaf);
    published.Append(MerkleLeafHash(AsBytes(bytes)));
    committed.Append(CommittedLeaf(nonce, worker, AsBytes(bytes)));
  }
  return Opening{.attestation = attestation,
                 .challenge = challenge,
                 .index = index,
                 .leaf = EncodeTranscriptLeaf(leaves[index]),
                 .proof = published.InclusionProof(index, leaves.size()).value(),
                 .commitment_proof = committed.InclusionProof(index, leaves.size()).value()};
}

absl::Status VerifyOpening(const Opening& opening, const OpeningClaim& claim) {
  const ByteSpan leaf = AsBytes(opening.leaf);
  LOCKSTEP_RETURN_IF_ERROR(VerifyMerkleInclusion(MerkleLeafHash(leaf), opening.index, claim.leaves,
                                                 opening.proof, claim.transcript),
                           "the leaf is not under the published transcript root");
  LOCKSTEP_RETURN_IF_ERROR(
      VerifyMerkleInclusion(CommittedLeaf(claim.nonce, claim.worker, leaf), opening.index,
                            claim.leaves, opening.commitment_proof, claim.openings_digest),
      "the leaf is not under the attestation's commitment");
  return absl::OkStatus();
}

}  // namespace lockstep::audit
