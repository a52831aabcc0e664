// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: safetensors headers. What is accepted has entries that lie one after another, each
// with the bytes of its shape, and is the same header after it was written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/logging.h"
#include "engine/state/safetensors.h"

namespace lockstep::engine {
namespace {

void CheckHeader(absl::string_view json) {
  const auto header = ParseSafetensorsHeader(json);
  if (!header.ok()) return;
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : header->entries) {
    LOCKSTEP_CHECK(entry.shape.size() <= kSafetensorsRankMax);
    uint64_t bytes = BytesOf(entry.type);
    for (const int64_t extent : entry.shape) bytes *= extent;
    LOCKSTEP_CHECK(entry.begin == at && entry.end - entry.begin == bytes);
    at = entry.end;
  }
  LOCKSTEP_CHECK(at <= kSafetensorsExtentMax);
  SafetensorsHeader again = *header;
  const std::string encoded = EncodeSafetensorsHeader(again);
  LOCKSTEP_CHECK(again == *header);
  const auto parsed = ParseSafetensorsHeader(absl::string_view(encoded).substr(8));
  LOCKSTEP_CHECK(parsed.ok() && *parsed == *header);
}

}  // namespace
}  // namespace lockstep::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::engine::CheckHeader(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
