// SPDX-License-Identifier: Apache-2.0
//
// The two faces of a byte string. Functions take ByteSpan; what owns bytes is a std::string, since
// files, protocol buffers and SQLite speak that.

#ifndef LOCKSTEP_BASE_BYTES_H_
#define LOCKSTEP_BASE_BYTES_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

using ByteSpan = std::span<const uint8_t>;

// The same bytes, seen the other way; they must outlive the result.
inline ByteSpan AsBytes(absl::string_view s) {
  return ByteSpan(reinterpret_cast<const uint8_t*>(s.data()), s.size());
}
inline absl::string_view AsChars(ByteSpan b) {
  return absl::string_view(reinterpret_cast<const char*>(b.data()), b.size());
}

// A copy that owns its bytes.
inline std::string ToString(ByteSpan b) { return std::string(b.begin(), b.end()); }

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_BYTES_H_
