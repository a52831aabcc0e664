// SPDX-License-Identifier: Apache-2.0
//
// The two tables.
#include "engine/tokenizer/byte_level.h"

#include <array>
#include <cstdint>

namespace lockstep::engine {
namespace {

constexpr int kCodes = 0x100 + 68;

struct Tables {
  std::array<uint16_t, 256> code_of{};
  std::array<int16_t, kCodes> byte_of{};

  constexpr Tables() {
    for (int16_t& byte : byte_of) byte = -1;
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool visible =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
      const int code = visible ? byte : next++;
      code_of[byte] = static_cast<uint16_t>(code);
      byte_of[code] = static_cast<int16_t>(byte);
    }
  }
};

constexpr Tables kTables;

}  // namespace

std::string ByteLevelEncode(absl::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const uint32_t code = kTables.code_of[static_cast<uint8_t>(c)];
    if (code < 0x80) {
      text.push_back(static_cast<char>(code));
    } else {
      text.push_back(static_cast<char>(0xC0 | code >> 6));
      text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
  }
  return text;
}

std::optional<std::string> ByteLevelDecode(absl::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t code = static_cast<uint8_t>(text[i]);
    if (code >= 0x80) {
      if (code < 0xC2 || code > 0xDF || i + 1 == text.size()) return std::nullopt;
      const uint32_t low = static_cast<uint8_t>(text[++i]);
      if ((low & 0xC0) != 0x80) return std::nullopt;
      code = (code & 0x1F) << 6 | (low & 0x3F);
    }
    if (code >= kCodes || kTables.byte_of[code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kTables.byte_of[code]));
  }
  return bytes;
}

}  // namespace lockstep::engine
