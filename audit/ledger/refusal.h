// SPDX-License-Identifier: Apache-2.0
//
// Why the ledger takes an entry not, in a word that programs can tell apart. It travels as a
// payload of the status, so that messages stay for people.
#ifndef LOCKSTEP_AUDIT_LEDGER_REFUSAL_H_
#define LOCKSTEP_AUDIT_LEDGER_REFUSAL_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::audit {

enum class Refusal : uint8_t {
  kMalformed,       // no entry of a known form, or not as many signatures as it needs
  kOutOfOrder,      // an index that does not come after those before
  kWrongSignature,  // not signed by who must sign it
  kUnknownKey,      // signed by a key that nobody registered
  kRevokedKey,      // by one that has ended, or whose operator has
  kWrongRole,       // by one that may not sign this
  kUnknownRun,      // about a run that is not registered
  kUnknownStep,     // about a step that has no record
  kChainBreak,      // a record, checkpoint or segment that does not follow from what is there
  kSecondHistory,   // a third record for a step of which two are kept
  kDuplicate,       // said before
  kNotThePublishedRecord,  // an attestation about another record than the published one
  kFalseVerdict,           // a match whose values differ, or a mismatch whose values do not
  kWrongNumerics,          // an attestation under another numerics contract
  kUnknownAttestation,     // an opening of an attestation that is not there
  kWrongChallenge,         // an opening without the log's challenge
  kOpeningNotAsked,        // of a leaf that the challenge did not pick, or of a void attestation
  kOpeningWrong,           // it does not show what it should
  kEvidenceMissing         // a dispute whose evidence does not bear it out
};

// "UNKNOWN_KEY", as errors of the service name it.
absl::string_view RefusalName(Refusal refusal);

// The error of a refusal: its code, with the reason attached.
absl::Status Refuse(Refusal refusal, absl::string_view message);

// The reason attached to an error; nullopt for other errors.
std::optional<Refusal> RefusalOf(const absl::Status& status);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_REFUSAL_H_
