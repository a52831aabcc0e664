// SPDX-License-Identifier: Apache-2.0
//
// Openings: what tells an auditor who replayed a step from one who copied its published roots.
//
// With the attestation the worker commits to every leaf of its transcript, salted with the lease's
// nonce and its own key. Then the coordinator's log key signs the attestation's hash: the
// challenge, which nobody can foresee who has not that key, and which picks the leaves to open. An
// opening shows a leaf under the root that the trainer published and under the worker's commitment.
// Format and what this proves: docs/attestation.md.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_OPENING_H_
#define LOCKSTEP_AUDIT_EVIDENCE_OPENING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/run_manifest.h"
#include "audit/transcript.h"
#include "base/ed25519.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr char kOpeningPayloadType[] = "application/vnd.lockstep.opening.v1+json";
inline constexpr char kChallengePayloadType[] = "application/vnd.lockstep.challenge.v1";

struct Opening {
  Digest attestation;                    // leaf hash in the log of the attestation's entry
  Ed25519Signature challenge{};          // MakeChallenge of it
  uint64_t index = 0;                    // of the leaf in the transcript, one of ChallengedIndices
  std::string leaf;                      // an encoded TranscriptLeaf
  std::vector<Digest> proof;             // that it is under the record's transcript root
  std::vector<Digest> commitment_proof;  // and under the attestation's openings digest
  bool operator==(const Opening&) const = default;
};

std::string EncodeOpening(const Opening& opening);

// Accepts exactly what EncodeOpening writes of an opening whose leaf is a transcript leaf.
// Untrusted input; DataLoss. Proofs and challenge are checked below.
absl::StatusOr<Opening> ParseOpening(absl::string_view text);

// Leaves of a step's transcript: one for each micro-batch of each rank, of the batch phase that
// the tokens before the step belong to. 0 if those are beyond the last phase. The manifest is
// valid.
uint64_t TranscriptLeavesOf(const RunManifest& manifest, uint64_t tokens_before);

// RFC 6962's root over leaves of (nonce || worker key || encoded transcript leaf), in the
// transcript's order: the attestation's `openings_digest`.
Digest OpeningsDigest(const Digest& nonce, const Ed25519PublicKey& worker,
                      const std::vector<TranscriptLeaf>& leaves);

// The log key's DSSE signature over the 32 bytes of an attestation's leaf hash, with the type
// kChallengePayloadType. The same each time it is made.
Ed25519Signature MakeChallenge(const Ed25519PrivateKey& log_key, const Digest& attestation);
bool VerifyChallenge(const Ed25519PublicKey& log_key, const Digest& attestation,
                     const Ed25519Signature& challenge);

// The leaves to open, `count` of them or all there are, distinct: a function of the challenge.
std::vector<uint64_t> ChallengedIndices(const Ed25519Signature& challenge, uint64_t leaves,
                                        int count);

// Answers a challenge for leaf `index`; InvalidArgument if there is none. `leaves` are those of the
// replay. Whoever answers verifies the challenge and picks the indices with ChallengedIndices.
absl::StatusOr<Opening> MakeOpening(const Digest& attestation, const Ed25519Signature& challenge,
                                    const Digest& nonce, const Ed25519PublicKey& worker,
                                    const std::vector<TranscriptLeaf>& leaves, uint64_t index);

// What an opening is held to, besides the challenge.
struct OpeningClaim {
  Digest transcript;       // of the published record
  Digest openings_digest;  // of the attestation, as the next
  Digest nonce;
  Ed25519PublicKey worker;  // who signed both
  uint64_t leaves = 0;      // of the step's transcript
};
// OK if the leaf is under both roots at its index; otherwise InvalidArgument says what is wrong.
absl::Status VerifyOpening(const Opening& opening, const OpeningClaim& claim);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_OPENING_H_
