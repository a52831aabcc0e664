// SPDX-License-Identifier: Apache-2.0
//
// Private to the coordinator's sources: what is done to an envelope on the caller's thread, so that
// garbage never gets to the writer.

#ifndef LOCKSTEP_COORDINATOR_CORE_PARSE_H_
#define LOCKSTEP_COORDINATOR_CORE_PARSE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "audit/evidence/log_entry.h"
#include "base/ed25519.h"
#include "base/sha256.h"
#include "coordinator/core/reasons.h"

namespace lockstep::coordinator {

inline absl::Status EnvelopeInvalid(absl::string_view message) {
  return Refused(absl::StatusCode::kInvalidArgument, "ENVELOPE_INVALID", message);
}

// More than an entry needs (docs/attestation.md, Entries) is not taken into the log: whoever reads
// it passes over it, and everybody has to keep it.
inline constexpr size_t kEnvelopeSlackBytes = 64;

inline absl::StatusOr<audit::LogEntry> ParseAs(const std::string& envelope, audit::EntryKind kind) {
  absl::StatusOr<audit::LogEntry> entry = audit::LogEntry::Parse(envelope);
  if (!entry.ok()) return EnvelopeInvalid(entry.status().message());
  if (envelope.size() > entry->canonical_bytes() + kEnvelopeSlackBytes) {
    return EnvelopeInvalid(absl::StrCat("expected at most ", kEnvelopeSlackBytes,
                                        " bytes besides the ", entry->canonical_bytes(),
                                        " that the envelope has in canonical JSON; found ",
                                        envelope.size() - entry->canonical_bytes()));
  }
  if (entry->kind() == kind) return entry;
  return EnvelopeInvalid(absl::StrCat("expected an entry of kind ", audit::EntryKindName(kind),
                                      "; found ", audit::EntryKindName(entry->kind())));
}

// Verifies, and lets the writer know.
inline absl::Status VerifyOn(audit::LogEntry& entry, const Ed25519PublicKey& key) {
  entry.MarkSignedBy(key);
  if (entry.IsSignedBy(key)) return absl::OkStatus();
  return EnvelopeInvalid("the envelope is not signed by the key that must sign it");
}

// Whose turn it is (WriteRequest::source).
inline uint64_t SourceOf(const Digest& digest) {
  uint64_t source = 0;
  for (int i = 0; i < 8; ++i) source = source << 8 | digest.bytes[i];
  return source;
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_PARSE_H_
