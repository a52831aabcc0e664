// SPDX-License-Identifier: Apache-2.0
//
// Refusals by name.

#include "coordinator/core/reasons.h"

#include <string>

#include "audit/ledger/refusal.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {
namespace {

using audit::EntryKind;
using audit::Refusal;

// What has been said before, by what was said.
absl::string_view DuplicateReason(EntryKind kind) {
  switch (kind) {
    case EntryKind::kRun:
      return "RUN_EXISTS_DIFFERENTLY";
    case EntryKind::kKey:
      return "KEY_EXISTS";
    case EntryKind::kAttestation:
      return "ATTESTATION_EXISTS";
    default:
      return "DUPLICATE";
  }
}

absl::string_view ReasonFor(Refusal refusal, EntryKind kind) {
  switch (refusal) {
    case Refusal::kMalformed:
    case Refusal::kWrongSignature:
      return "ENVELOPE_INVALID";
    case Refusal::kUnknownKey:
      return "KEY_UNKNOWN";
    case Refusal::kRevokedKey:
      return "KEY_REVOKED";
    case Refusal::kUnknownRun:
      return "RUN_UNKNOWN";
    case Refusal::kUnknownStep:
      return kind == EntryKind::kCheckpoint || kind == EntryKind::kEvaluation
                 ? "CHECKPOINT_UNKNOWN_STEP"
                 : "STEP_UNKNOWN";
    case Refusal::kChainBreak:
      return "CHAIN_BROKEN";
    case Refusal::kDuplicate:
      return DuplicateReason(kind);
    default:
      return audit::RefusalName(refusal);  // the wire's words already
  }
}

}  // namespace

absl::Status WithWireReason(const absl::Status& refusal, EntryKind kind) {
  const std::optional<Refusal> what = audit::RefusalOf(refusal);
  if (!what) return refusal;
  return rpc::WithReason(refusal, ReasonFor(*what, kind));
}

absl::Status Refused(absl::StatusCode code, absl::string_view reason, absl::string_view message) {
  return rpc::WithReason(absl::Status(code, message), reason);
}

}  // namespace lockstep::coordinator
