// SPDX-License-Identifier: Apache-2.0
//
// A dispute: the coordinator points at evidence that a step is in question, or that an attestation
// is void. Signed by the log's key, and never believed for that: the ledger looks at the evidence.
// Format: docs/attestation.md.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_DISPUTE_H_
#define LOCKSTEP_AUDIT_EVIDENCE_DISPUTE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr char kDisputePayloadType[] = "application/vnd.lockstep.dispute.v1+json";
inline constexpr size_t kDisputeEvidenceMax = 16;

enum class DisputeReason : uint8_t {
  kMismatch,       // an attestation of the log says mismatch
  kSecondHistory,  // the log holds two records of the trainer for the step
  kBadOpening,     // a worker signed an opening that is wrong: its attestation is void
};
absl::string_view DisputeReasonName(DisputeReason reason);  // "mismatch", "second-history", ...

// An entry of the log by its leaf hash, or an envelope that the log did not take.
using Evidence = std::variant<Digest, std::string>;

struct Dispute {
  Digest run_id;
  uint64_t step = 0;
  DisputeReason reason = DisputeReason::kMismatch;
  std::vector<Evidence> evidence;  // from 1
  bool operator==(const Dispute&) const = default;
};

std::string EncodeDispute(const Dispute& dispute);

// Accepts exactly what EncodeDispute writes of a valid dispute. Untrusted input; DataLoss.
absl::StatusOr<Dispute> ParseDispute(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_DISPUTE_H_
