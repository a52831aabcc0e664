// SPDX-License-Identifier: Apache-2.0
//
// How a run becomes known: its manifest, the key that will sign its records, the state it begins
// with, and what it takes for one of its steps to be called confirmed. Signed by the trainer's key.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_RUN_REGISTRATION_H_
#define LOCKSTEP_AUDIT_EVIDENCE_RUN_REGISTRATION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/evidence/quorum.h"
#include "audit/run_manifest.h"
#include "base/ed25519.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr char kRunRegistrationPayloadType[] = "application/vnd.lockstep.run.v1+json";

// What the genesis chain commits to besides the run id (audit/step_record.h).
struct Genesis {
  Digest parameters;
  Digest first_moment;
  Digest second_moment;
  Digest cursor;
  bool operator==(const Genesis&) const = default;
};

struct RunRegistration {
  RunManifest manifest;
  Ed25519PublicKey trainer_key;
  // Of a run without a parent, and only then: a segment begins with its parent's chain.
  std::optional<Genesis> genesis;
  Quorum quorum;
  bool operator==(const RunRegistration&) const = default;

  // The chain before the run's first step, and that step.
  Digest first_chain() const;
  uint64_t first_step() const;
};

std::string EncodeRunRegistration(const RunRegistration& registration);

// Accepts exactly what EncodeRunRegistration writes of a valid registration. Untrusted input;
// DataLoss.
absl::StatusOr<RunRegistration> ParseRunRegistration(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_RUN_REGISTRATION_H_
