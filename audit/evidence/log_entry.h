// SPDX-License-Identifier: Apache-2.0
//
// An entry of the log: the bytes of a DSSE envelope, and what they say. Eight kinds, told apart by
// the payload type. Form only: what an entry is worth, the ledger decides (audit/ledger/ledger.h).
// Format: docs/attestation.md.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_LOG_ENTRY_H_
#define LOCKSTEP_AUDIT_EVIDENCE_LOG_ENTRY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/evidence/attestation.h"
#include "audit/evidence/checkpoint_announcement.h"
#include "audit/evidence/dispute.h"
#include "audit/evidence/evaluation.h"
#include "audit/evidence/key_event.h"
#include "audit/evidence/opening.h"
#include "audit/evidence/run_registration.h"
#include "audit/step_record.h"
#include "base/ed25519.h"
#include "base/sha256.h"

namespace lockstep::audit {

// What tlog-tiles can hold.
inline constexpr size_t kLogEntryBytesMax = 65535;

inline constexpr char kRecordPayloadType[] = "application/vnd.lockstep.step-record.v1";

// A step record as it is published: the payload is the run id and the 336 bytes of the record.
struct PublishedRecord {
  Digest run_id;
  StepRecord record;
  bool operator==(const PublishedRecord&) const = default;
};

// In the order of EntryKind.
using EntryPayload = std::variant<RunRegistration, PublishedRecord, CheckpointAnnouncement,
                                  KeyEvent, Attestation, Opening, Dispute, Evaluation>;
enum class EntryKind : uint8_t {
  kRun,
  kRecord,
  kCheckpoint,
  kKey,
  kAttestation,
  kOpening,
  kDispute,
  kEvaluation
};
inline constexpr int kEntryKinds = 8;
absl::string_view EntryKindName(EntryKind kind);  // "run", "record", ...

// A parsed entry. Move it, or keep it: it owns what it holds.
class LogEntry {
 public:
  // Untrusted input. DataLoss unless it is an envelope of a known payload type with a payload of
  // that form, at most kLogEntryBytesMax bytes, and each signature is 64 bytes and has the Id() of
  // its key as `keyid`, all different. Nothing is verified.
  static absl::StatusOr<LogEntry> Parse(absl::string_view bytes);

  EntryKind kind() const { return static_cast<EntryKind>(payload_.index()); }
  const EntryPayload& payload() const { return payload_; }
  // RFC 6962's, of the bytes: what the entry goes by in the log.
  const Digest& leaf_hash() const { return leaf_hash_; }
  // What the same envelope has in canonical JSON; the bytes may be more, by white space and members
  // that nobody knows.
  size_t canonical_bytes() const { return canonical_bytes_; }
  // Of the keys that are said to have signed, in the envelope's order.
  const std::vector<Digest>& signer_ids() const { return signer_ids_; }

  // Whether the envelope has a valid signature of this key. Verified once where MarkSignedBy was
  // called before.
  bool IsSignedBy(const Ed25519PublicKey& key) const;
  // Verifies, and remembers a key that signed: so threads may do the costly part before one of
  // them applies entries in their order.
  void MarkSignedBy(const Ed25519PublicKey& key);
  // The same for the challenge in an opening; false for other kinds.
  bool IsChallengedBy(const Ed25519PublicKey& log_key) const;
  void MarkChallengedBy(const Ed25519PublicKey& log_key);

 private:
  bool Verify(const Ed25519PublicKey& key) const;

  EntryPayload payload_;
  Digest leaf_hash_;
  size_t canonical_bytes_ = 0;
  std::string pae_;
  std::vector<Digest> signer_ids_;
  std::vector<std::string> signatures_;
  std::vector<Ed25519PublicKey> signed_by_;
  std::optional<Ed25519PublicKey> challenged_by_;
};

// An entry's bytes, signed by these keys. ResourceExhausted if they are too many for a log.
absl::StatusOr<std::string> MakeLogEntry(const EntryPayload& payload,
                                         std::span<const Ed25519PrivateKey* const> keys);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_LOG_ENTRY_H_
