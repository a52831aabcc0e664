// SPDX-License-Identifier: Apache-2.0
//
// What an auditor says of one step: an in-toto Statement v1 about the published step record, signed
// by the worker's key. Format, and what it does and does not prove: docs/attestation.md. What it
// counts for is the ledger's to say.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_ATTESTATION_H_
#define LOCKSTEP_AUDIT_EVIDENCE_ATTESTATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "audit/step_record.h"
#include "audit/verdict.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr char kAttestationPayloadType[] = "application/vnd.in-toto+json";
inline constexpr char kStepAuditPredicateType[] = "https://lockstep.dev/lockstep/step-audit/v1";

// The roots of a step record, as the replay has them.
struct AttestedRoots {
  Digest parameters;
  Digest first_moment;
  Digest second_moment;
  Digest gradient;
  Digest windows;
  Digest transcript;
  Digest cursor;
  bool operator==(const AttestedRoots&) const = default;
};
AttestedRoots RootsOf(const StepRecord& record);

struct AttestingEngine {
  std::string name;
  std::string version;
  Digest build;          // of the program's file
  std::string numerics;  // "lockstep-numerics-1"
  bool operator==(const AttestingEngine&) const = default;
};

struct AttestingBackend {
  std::string backend_class;  // IsBackendClass: what diversity is counted in
  std::string isa;            // for people, as the next two
  std::string cpu;
  int64_t threads = 0;
  bool operator==(const AttestingBackend&) const = default;
};

// "reference", "x86-avx2", "x86-avx512", "arm-neon", or "cuda-sm" and two or three digits. A fixed
// set, so that nobody makes up diversity by making up names.
bool IsBackendClass(absl::string_view name);

struct Attestation {
  Digest run_id;
  uint64_t step = 0;
  Digest record;          // SHA-256 of the published step record: the statement's subject
  Digest from_chain;      // before the step
  Digest computed_chain;  // after it, as replayed
  AttestedRoots roots;    // likewise
  // kMatch or kMismatch: nothing else is signed into a log.
  Verdict verdict = Verdict::kMatch;
  std::string lease_id;    // ties it to the coordinator's work; the ledger does not look at it
  Digest nonce;            // the lease's
  Digest openings_digest;  // audit/evidence/opening.h: commits to all transcript leaves
  AttestingEngine engine;
  AttestingBackend backend;
  absl::Time replayed_at;  // whole seconds, by the worker's clock
  // Of a mismatch, and only then: the replayed record, whose roots and chain are those above, and
  // where the two records first part (`difference.step` is `step`).
  std::optional<StepRecord> computed_record;
  Difference difference;
};

// The statement as canonical JSON, of an attestation that ParseAttestation would take.
std::string EncodeAttestation(const Attestation& attestation);

// Accepts exactly what EncodeAttestation writes of a valid attestation. Untrusted input. DataLoss
// names the field, what was expected and what was found.
absl::StatusOr<Attestation> ParseAttestation(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_ATTESTATION_H_
