// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: notes, log checkpoints, keys of notes, tile paths, entry bundles, proofs. The first
// byte chooses. What is accepted is written back to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "audit/log/log_checkpoint.h"
#include "audit/log/log_proof.h"
#include "audit/log/log_tiles.h"
#include "audit/log/signed_note.h"
#include "base/logging.h"

namespace lockstep::audit {
namespace {

void CheckNote(absl::string_view text) {
  const auto note = ParseSignedNote(text);
  if (!note.ok()) return;
  LOCKSTEP_CHECK(note->Encode() == text);
  for (const NoteSignature& signature : note->signatures) {
    LOCKSTEP_CHECK(IsNoteKeyName(signature.name));
  }
}

void CheckCheckpoint(absl::string_view text) {
  const auto checkpoint = ParseLogCheckpoint(text);
  if (!checkpoint.ok()) return;
  const std::string encoded = EncodeLogCheckpoint(*checkpoint);
  LOCKSTEP_CHECK(text.substr(0, encoded.size()) == encoded);
}

void CheckPath(absl::string_view text) {
  const auto tile = ParseTilePath(text);
  if (tile.ok()) LOCKSTEP_CHECK(PathOf(*tile) == text);
}

void CheckBundle(int count, absl::string_view bytes) {
  const auto entries = ParseEntryBundle(bytes, count);
  if (!entries.ok()) return;
  LOCKSTEP_CHECK(entries->size() == static_cast<size_t>(count));
  const std::vector<std::string> copies(entries->begin(), entries->end());
  LOCKSTEP_CHECK(EncodeEntryBundle(copies).value() == bytes);
}

}  // namespace
}  // namespace lockstep::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::audit;
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      CheckNote(text);
      break;
    case 1:  // behind a text that is one
      CheckNote(absl::StrCat("text\n\n\xe2\x80\x94 ", text));
      break;
    case 2:
      CheckCheckpoint(text);
      break;
    case 3:
      if (const auto key = NoteKey::FromText(text); key.ok()) {
        LOCKSTEP_CHECK(key->ToText() == text);
      }
      break;
    case 4:
      CheckPath(absl::StrCat("tile/", text));
      break;
    case 5:
      CheckBundle(data[0] / 8, text);
      break;
    default:
      for (const std::string& proof :
           {std::string(text), absl::StrCat("c2sp.org/tlog-proof@v1\n", text)}) {
        const auto parsed = ParseLogProof(proof);
        if (parsed.ok()) LOCKSTEP_CHECK(EncodeLogProof(*parsed) == proof);
      }
  }
  return 0;
}
