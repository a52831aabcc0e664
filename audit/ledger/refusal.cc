// SPDX-License-Identifier: Apache-2.0
//
// Names and codes, one row each.
#include "audit/ledger/refusal.h"

#include <string>

#include "absl/strings/cord.h"

namespace lockstep::audit {
namespace {

constexpr char kPayloadUrl[] = "lockstep.dev/refusal";

struct Row {
  Refusal refusal;
  absl::string_view name;
  absl::StatusCode code;
};
constexpr Row kRows[] = {
    {Refusal::kMalformed, "MALFORMED", absl::StatusCode::kInvalidArgument},
    {Refusal::kOutOfOrder, "OUT_OF_ORDER", absl::StatusCode::kFailedPrecondition},
    {Refusal::kWrongSignature, "WRONG_SIGNATURE", absl::StatusCode::kPermissionDenied},
    {Refusal::kUnknownKey, "UNKNOWN_KEY", absl::StatusCode::kPermissionDenied},
    {Refusal::kRevokedKey, "REVOKED_KEY", absl::StatusCode::kPermissionDenied},
    {Refusal::kWrongRole, "WRONG_ROLE", absl::StatusCode::kPermissionDenied},
    {Refusal::kUnknownRun, "UNKNOWN_RUN", absl::StatusCode::kNotFound},
    {Refusal::kUnknownStep, "UNKNOWN_STEP", absl::StatusCode::kNotFound},
    {Refusal::kChainBreak, "CHAIN_BREAK", absl::StatusCode::kFailedPrecondition},
    {Refusal::kSecondHistory, "SECOND_HISTORY", absl::StatusCode::kFailedPrecondition},
    {Refusal::kDuplicate, "DUPLICATE", absl::StatusCode::kAlreadyExists},
    {Refusal::kNotThePublishedRecord, "NOT_THE_PUBLISHED_RECORD",
     absl::StatusCode::kFailedPrecondition},
    {Refusal::kFalseVerdict, "FALSE_VERDICT", absl::StatusCode::kInvalidArgument},
    {Refusal::kWrongNumerics, "WRONG_NUMERICS", absl::StatusCode::kInvalidArgument},
    {Refusal::kUnknownAttestation, "UNKNOWN_ATTESTATION", absl::StatusCode::kNotFound},
    {Refusal::kWrongChallenge, "WRONG_CHALLENGE", absl::StatusCode::kPermissionDenied},
    {Refusal::kOpeningNotAsked, "OPENING_NOT_ASKED", absl::StatusCode::kFailedPrecondition},
    {Refusal::kOpeningWrong, "OPENING_WRONG", absl::StatusCode::kInvalidArgument},
    {Refusal::kEvidenceMissing, "EVIDENCE_MISSING", absl::StatusCode::kFailedPrecondition}};

const Row& RowOf(Refusal refusal) {
  for (const Row& row : kRows) {
    if (row.refusal == refusal) return row;
  }
  return kRows[0];
}

}  // namespace

absl::string_view RefusalName(Refusal refusal) { return RowOf(refusal).name; }

absl::Status Refuse(Refusal refusal, absl::string_view message) {
  const Row& row = RowOf(refusal);
  absl::Status status(row.code, message);
  status.SetPayload(kPayloadUrl, absl::Cord(row.name));
  return status;
}

std::optional<Refusal> RefusalOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  for (const Row& row : kRows) {
    if (*payload == row.name) return row.refusal;
  }
  return std::nullopt;
}

}  // namespace lockstep::audit
