// SPDX-License-Identifier: Apache-2.0
//
// Signed notes (c2sp.org/signed-note): a text, a blank line, and lines with a key's name and its
// signature over the text. Ed25519 (type 0x01) only; lines of other kinds are kept and not looked
// at.
#ifndef LOCKSTEP_AUDIT_LOG_SIGNED_NOTE_H_
#define LOCKSTEP_AUDIT_LOG_SIGNED_NOTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ed25519.h"

namespace lockstep::audit {

// Not empty, UTF-8, without spaces, control characters or '+'. Of the spaces beyond ASCII, those of
// Unicode's White_Space.
bool IsNoteKeyName(absl::string_view name);

// A key and the name it signs notes under.
struct NoteKey {
  std::string name;
  Ed25519PublicKey key;

  // First four bytes, big-endian, of SHA-256(name || 0x0a || 0x01 || key).
  uint32_t id() const;
  // As tools for notes take it: NAME+ID+BASE64(0x01 || key).
  std::string ToText() const;
  // InvalidArgument unless it is such a text, with the right id, and a key that may be registered.
  static absl::StatusOr<NoteKey> FromText(absl::string_view text);

  bool operator==(const NoteKey&) const = default;
};

struct NoteSignature {
  std::string name;
  uint32_t key_id = 0;
  std::string bytes;
  bool operator==(const NoteSignature&) const = default;
};

struct SignedNote {
  std::string text;  // with its last newline
  std::vector<NoteSignature> signatures;
  bool operator==(const SignedNote&) const = default;

  std::string Encode() const;
};

inline constexpr size_t kNoteBytesMax = 65536;
inline constexpr size_t kNoteSignaturesMax = 64;

// Untrusted input. DataLoss unless it has the form above, within the bounds. Nothing is verified.
absl::StatusOr<SignedNote> ParseSignedNote(absl::string_view note);

// Adds a signature under this name (checked: IsNoteKeyName).
void SignNote(absl::string_view name, const Ed25519PrivateKey& key, SignedNote* note);

// OK if the key has signed the note; PermissionDenied if it has not, or if any line that bears its
// name and id does not verify. Other keys' lines are ignored.
absl::Status VerifyNote(const SignedNote& note, const NoteKey& key);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LOG_SIGNED_NOTE_H_
