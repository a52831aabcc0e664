// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: canonical JSON. What is accepted is printed to the same bytes, unless it holds an
// integer that may only be read; and its 8-byte pieces, as numbers, come back from their texts.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/canonical_json.h"
#include "base/logging.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto json = ParseCanonicalJson(input); json.ok()) {
    const auto text = CanonicalJson(*json);
    LOCKSTEP_CHECK(text.ok() ? *text == input
                             : absl::StrContains(text.status().message(), "integer"));
  }
  for (size_t at = 0; at + 8 <= size; at += 8) {
    uint64_t bits = 0;
    std::memcpy(&bits, data + at, 8);
    const auto value = std::bit_cast<double>(bits);
    if (!std::isfinite(value) || value == 0) continue;
    const auto json = ParseCanonicalJson(absl::StrCat("{\"x\":", CanonicalNumber(value), "}"));
    LOCKSTEP_CHECK(json.ok() && std::bit_cast<uint64_t>((*json)["x"].get<double>()) == bits);
  }
  return 0;
}
