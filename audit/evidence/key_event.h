// SPDX-License-Identifier: Apache-2.0
//
// How keys come and go: an operator (a person or a group that runs workers) makes itself known, a
// worker's key is tied to its operator, a key gives way to another, a key ends. Who must have
// signed what: docs/attestation.md; the ledger checks it.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_KEY_EVENT_H_
#define LOCKSTEP_AUDIT_EVIDENCE_KEY_EVENT_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ed25519.h"

namespace lockstep::audit {

inline constexpr char kKeyEventPayloadType[] = "application/vnd.lockstep.key-event.v1+json";

// Signed by operator_key.
struct OperatorEvent {
  Ed25519PublicKey operator_key;
  // Kept off line, to end the operator's keys when they are lost or stolen. Not operator_key.
  Ed25519PublicKey revocation_key;
  std::string name;     // for people: 1 to 64 bytes of a stranger's text
  std::string contact;  // up to 256; may be empty
  bool operator==(const OperatorEvent&) const = default;
};
// Signed by both.
struct WorkerEvent {
  Ed25519PublicKey worker_key;
  Ed25519PublicKey operator_key;
  std::string hardware;  // a label for people, 1 to 128 bytes
  bool operator==(const WorkerEvent&) const = default;
};
// Signed by both. The new key is what the old one was; the old one ends.
struct RotateEvent {
  Ed25519PublicKey old_key;
  Ed25519PublicKey new_key;
  bool operator==(const RotateEvent&) const = default;
};
// Signed by the key itself, by its operator's key, or by its operator's revocation key.
struct RevokeEvent {
  Ed25519PublicKey key;
  std::string reason;  // 1 to 256 bytes
  bool operator==(const RevokeEvent&) const = default;
};
using KeyEvent = std::variant<OperatorEvent, WorkerEvent, RotateEvent, RevokeEvent>;

std::string EncodeKeyEvent(const KeyEvent& event);

// Accepts exactly what EncodeKeyEvent writes of a valid event. Untrusted input; DataLoss.
absl::StatusOr<KeyEvent> ParseKeyEvent(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_KEY_EVENT_H_
