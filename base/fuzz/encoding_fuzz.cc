// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: hexadecimal and base64. What a decoder accepts it must give back on encoding, but
// for case, alphabet and padding; what an encoder writes must decode to the same bytes.

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/encoding.h"
#include "base/logging.h"
#include "base/sha256.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const ByteSpan input(data, size);
  std::string text = ToString(input);

  LOCKSTEP_CHECK(HexDecode(HexEncode(input)).value() == text);
  LOCKSTEP_CHECK(Base64Decode(Base64Encode(input)).value() == text);

  const absl::StatusOr<Digest> digest = Digest::FromHex(text);
  const absl::StatusOr<std::string> hex = HexDecode(text);
  LOCKSTEP_CHECK(digest.ok() == (hex.ok() && size == 64));
  if (hex.ok()) {
    std::string lower = text;
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    LOCKSTEP_CHECK(HexEncode(AsBytes(*hex)) == lower);
    if (digest.ok()) LOCKSTEP_CHECK(digest->ToHex() == lower);
  }

  if (const absl::StatusOr<std::string> bytes = Base64Decode(text); bytes.ok()) {
    for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
    while (text.size() % 4 != 0) text += '=';
    LOCKSTEP_CHECK(Base64Encode(AsBytes(*bytes)) == text);
  }
  return 0;
}
