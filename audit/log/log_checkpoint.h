// SPDX-License-Identifier: Apache-2.0
//
// The head of a log, signed (c2sp.org/tlog-checkpoint): how many entries there are, and the root
// over them. Not to be taken for a checkpoint of training (audit/checkpoint_manifest.h).
#ifndef LOCKSTEP_AUDIT_LOG_LOG_CHECKPOINT_H_
#define LOCKSTEP_AUDIT_LOG_LOG_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/log/signed_note.h"
#include "base/ed25519.h"
#include "base/sha256.h"

namespace lockstep::audit {

struct LogCheckpoint {
  std::string origin;  // which log: also the name of its key
  uint64_t size = 0;   // entries
  Digest root;         // RFC 6962, over them
  bool operator==(const LogCheckpoint&) const = default;
};

// The note's text: origin, size and root, a line each.
std::string EncodeLogCheckpoint(const LogCheckpoint& checkpoint);

// Of a note's text. Extension lines after the root are allowed, and not returned. Untrusted input;
// DataLoss.
absl::StatusOr<LogCheckpoint> ParseLogCheckpoint(absl::string_view text);

// The signed note. The origin must be a key name (checked: what comes from a configuration is
// looked at with IsNoteKeyName before).
std::string SignLogCheckpoint(const LogCheckpoint& checkpoint, const Ed25519PrivateKey& key);

// Reads a signed note and verifies that `key` has signed it and that its name is the origin.
// Untrusted input: DataLoss for what is no checkpoint, PermissionDenied for one of another log or
// without the signature.
absl::StatusOr<LogCheckpoint> OpenLogCheckpoint(absl::string_view note, const NoteKey& key);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LOG_LOG_CHECKPOINT_H_
