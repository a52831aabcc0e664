// SPDX-License-Identifier: Apache-2.0
//
// Notes as text. UTF-8 is checked by the JSON library's own decoder.
#include "audit/log/signed_note.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "base/sha256.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr char kEd25519Type = 0x01;
constexpr absl::string_view kLineStart = "\xe2\x80\x94 ";  // an em dash and a space
constexpr size_t kSignatureBytesMax = 8192;

bool IsUtf8(absl::string_view text) {
  try {
    nlohmann::json(std::string(text)).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

absl::Status Error(absl::string_view message) {
  return absl::DataLossError(absl::StrCat("signed note: ", message));
}

// Standard base64, padded, and no other way to write it.
absl::StatusOr<std::string> DecodeStrict(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string bytes, Base64Decode(text));
  if (Base64Encode(AsBytes(bytes)) == text) return bytes;
  return absl::InvalidArgumentError("expected standard base64, padded");
}

uint32_t BigEndian32(absl::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

absl::StatusOr<NoteSignature> ParseLine(absl::string_view line) {
  if (!absl::StartsWith(line, kLineStart)) return Error("expected a signature line");
  line.remove_prefix(kLineStart.size());
  const size_t space = line.find(' ');
  if (space == line.npos || !IsNoteKeyName(line.substr(0, space))) {
    return Error("expected a key name in a signature line");
  }
  const auto bytes = DecodeStrict(line.substr(space + 1));
  if (!bytes.ok() || bytes->size() < 5 || bytes->size() > kSignatureBytesMax) {
    return Error("expected a key id and a signature as base64 in a signature line");
  }
  return NoteSignature{.name = std::string(line.substr(0, space)),
                       .key_id = BigEndian32(*bytes),
                       .bytes = bytes->substr(4)};
}

}  // namespace

bool IsNoteKeyName(absl::string_view name) {
  // White_Space beyond ASCII: U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F,
  // U+205F, U+3000.
  static constexpr absl::string_view kSpaces[] = {
      "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
      "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
      "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
      "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
  return !name.empty() && IsUtf8(name) && std::none_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte <= 0x20 || byte == 0x7f || c == '+';
  }) && std::none_of(std::begin(kSpaces), std::end(kSpaces), [&](absl::string_view space) {
    return absl::StrContains(name, space);
  });
}

uint32_t NoteKey::id() const {
  const std::string prefix = absl::StrCat(name, "\n", std::string(1, kEd25519Type));
  const Digest digest = Sha256({AsBytes(prefix), key.bytes});
  return BigEndian32(AsChars(digest.bytes).substr(0, 4));
}

std::string NoteKey::ToText() const {
  return absl::StrFormat("%s+%08x+%s", name, id(),
                         Base64Encode(AsBytes(std::string(1, kEd25519Type) + ToString(key.bytes))));
}

absl::StatusOr<NoteKey> NoteKey::FromText(absl::string_view text) {
  const size_t first = text.find('+');
  const size_t second = first == text.npos ? text.npos : text.find('+', first + 1);
  if (second == text.npos || !IsNoteKeyName(text.substr(0, first))) {
    return absl::InvalidArgumentError(
        "note key: expected NAME+ID+KEY, as a log's verifier key is written");
  }
  const auto bytes = DecodeStrict(text.substr(second + 1));
  if (!bytes.ok() || bytes->size() != 33 || (*bytes)[0] != kEd25519Type) {
    return absl::InvalidArgumentError("note key: expected an Ed25519 key as base64");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PublicKey public_key,
                            Ed25519PublicKey::FromBytes(AsBytes(*bytes).subspan(1)), "note key");
  NoteKey key = {.name = std::string(text.substr(0, first)), .key = public_key};
  if (key.ToText() == text) return key;
  return absl::InvalidArgumentError("note key: its id is not that of its name and key");
}

std::string SignedNote::Encode() const {
  std::string note = absl::StrCat(text, "\n");
  for (const NoteSignature& signature : signatures) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>(signature.key_id >> shift);
    }
    bytes += signature.bytes;
    absl::StrAppend(&note, kLineStart, signature.name, " ", Base64Encode(AsBytes(bytes)), "\n");
  }
  return note;
}

absl::StatusOr<SignedNote> ParseSignedNote(absl::string_view note) {
  if (note.size() > kNoteBytesMax) {
    return Error(absl::StrCat("expected at most ", kNoteBytesMax, " bytes; found ", note.size()));
  }
  const bool control = std::any_of(
      note.begin(), note.end(), [](char c) { return static_cast<uint8_t>(c) < 0x20 && c != '\n'; });
  if (control || !IsUtf8(note)) return Error("expected UTF-8 without control characters");
  // The last empty line parts text and signatures.
  const size_t blank = note.rfind("\n\n");
  if (blank == note.npos || !absl::EndsWith(note, "\n")) {
    return Error("expected a text, an empty line, and signature lines");
  }
  SignedNote result;
  result.text = std::string(note.substr(0, blank + 1));
  absl::string_view rest = note.substr(blank + 2);
  while (!rest.empty()) {
    if (result.signatures.size() == kNoteSignaturesMax) {
      return Error(absl::StrCat("expected at most ", kNoteSignaturesMax, " signatures"));
    }
    const size_t end = rest.find('\n');
    LOCKSTEP_ASSIGN_OR_RETURN(NoteSignature signature, ParseLine(rest.substr(0, end)));
    result.signatures.push_back(std::move(signature));
    rest.remove_prefix(end + 1);
  }
  if (result.signatures.empty()) return Error("expected a signature; found none");
  return result;
}

void SignNote(absl::string_view name, const Ed25519PrivateKey& key, SignedNote* note) {
  LOCKSTEP_CHECK(IsNoteKeyName(name));
  const NoteKey public_key = {.name = std::string(name), .key = key.public_key()};
  note->signatures.push_back({.name = public_key.name,
                              .key_id = public_key.id(),
                              .bytes = ToString(key.Sign(AsBytes(note->text)))});
}

absl::Status VerifyNote(const SignedNote& note, const NoteKey& key) {
  const uint32_t id = key.id();
  bool verified = false;
  for (const NoteSignature& signature : note.signatures) {
    if (signature.name != key.name || signature.key_id != id) continue;
    if (!VerifyEd25519(key.key, AsBytes(note.text), AsBytes(signature.bytes))) {
      return absl::PermissionDeniedError(
          absl::StrCat("signed note: the signature of ", key.name, " does not verify"));
    }
    verified = true;
  }
  if (verified) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("signed note: expected a signature of ", key.ToText(), "; found none of it"));
}

}  // namespace lockstep::audit
