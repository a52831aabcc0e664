// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: checkpoint manifests. What is accepted is written back to the same bytes, and its
// chain is its origin's. Inputs that begin otherwise are the record of a right manifest.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "audit/checkpoint_manifest.h"
#include "base/bytes.h"
#include "base/logging.h"

namespace lockstep::audit {
namespace {

void CheckText(absl::string_view text) {
  const auto manifest = ParseCheckpointManifest(text);
  if (!manifest.ok()) return;
  LOCKSTEP_CHECK(EncodeCheckpointManifest(*manifest) == text);
  LOCKSTEP_CHECK(manifest->files.size() == std::size(kCheckpointFiles));
  for (size_t i = 0; i < manifest->files.size(); ++i) {
    LOCKSTEP_CHECK(manifest->files[i].name == kCheckpointFiles[i]);
  }
  const StepRecord* record = manifest->record();
  if (record != nullptr) LOCKSTEP_CHECK(record->cursor == Sha256(AsBytes(manifest->cursor)));
}

void CheckRecord(absl::string_view input) {
  std::string bytes = EncodeStepRecord(StepRecord());
  std::copy_n(input.begin(), std::min(input.size(), bytes.size() - 8), bytes.begin() + 8);
  auto record = DecodeStepRecord(AsBytes(bytes));
  if (!record.ok()) return;
  CheckpointManifest manifest;
  manifest.cursor = std::string(input.substr(0, kCursorBytesMax));
  record->cursor = Sha256(AsBytes(manifest.cursor));
  manifest.origin = *record;
  for (const char* name : kCheckpointFiles)
    manifest.files.push_back({.name = name, .bytes = 1, .sha256 = {}});
  const auto parsed = ParseCheckpointManifest(EncodeCheckpointManifest(manifest));
  LOCKSTEP_CHECK(parsed.ok() && *parsed == manifest);
}

}  // namespace
}  // namespace lockstep::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] != '{') lockstep::audit::CheckRecord(input);
  lockstep::audit::CheckText(input);
  return 0;
}
