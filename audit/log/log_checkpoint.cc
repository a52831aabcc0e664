// SPDX-License-Identifier: Apache-2.0
//
// Three lines.
#include "audit/log/log_checkpoint.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/encoding.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

absl::Status Error(absl::string_view message) {
  return absl::DataLossError(absl::StrCat("log checkpoint: ", message));
}

}  // namespace

std::string EncodeLogCheckpoint(const LogCheckpoint& checkpoint) {
  return absl::StrCat(checkpoint.origin, "\n", checkpoint.size, "\n",
                      Base64Encode(checkpoint.root.bytes), "\n");
}

absl::StatusOr<LogCheckpoint> ParseLogCheckpoint(absl::string_view text) {
  if (!absl::EndsWith(text, "\n")) return Error("expected lines");
  const std::vector<absl::string_view> lines =
      absl::StrSplit(text.substr(0, text.size() - 1), '\n');
  if (lines.size() < 3) return Error("expected an origin, a size and a root, a line each");
  for (const absl::string_view line : lines) {
    if (line.empty()) return Error("expected no empty line");
  }
  LogCheckpoint checkpoint;
  checkpoint.origin = std::string(lines[0]);
  if (!absl::SimpleAtoi(lines[1], &checkpoint.size) || absl::StrCat(checkpoint.size) != lines[1]) {
    return Error("expected a size in decimal digits");
  }
  const absl::StatusOr<std::string> bytes = Base64Decode(lines[2]);
  const absl::StatusOr<Digest> root =
      bytes.ok() ? Digest::FromBytes(AsBytes(*bytes)) : absl::StatusOr<Digest>(bytes.status());
  if (!root.ok() || Base64Encode(root->bytes) != lines[2]) {
    return Error("expected a root of 32 bytes as base64");
  }
  checkpoint.root = *root;
  return checkpoint;
}

std::string SignLogCheckpoint(const LogCheckpoint& checkpoint, const Ed25519PrivateKey& key) {
  SignedNote note = {.text = EncodeLogCheckpoint(checkpoint), .signatures = {}};
  SignNote(checkpoint.origin, key, &note);
  return note.Encode();
}

absl::StatusOr<LogCheckpoint> OpenLogCheckpoint(absl::string_view note, const NoteKey& key) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SignedNote parsed, ParseSignedNote(note), "log checkpoint");
  LOCKSTEP_RETURN_IF_ERROR(VerifyNote(parsed, key), "log checkpoint");
  LOCKSTEP_ASSIGN_OR_RETURN(LogCheckpoint checkpoint, ParseLogCheckpoint(parsed.text));
  if (checkpoint.origin == key.name) return checkpoint;
  return absl::PermissionDeniedError(
      absl::StrCat("log checkpoint: expected the log ", key.name, "; found ", checkpoint.origin));
}

}  // namespace lockstep::audit
