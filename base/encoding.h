// SPDX-License-Identifier: Apache-2.0
//
// Bytes as text: hexadecimal and base64 (RFC 4648). Decoders take untrusted text and accept exactly
// what is described; the error is InvalidArgument, and says where the text went wrong.

#ifndef LOCKSTEP_BASE_ENCODING_H_
#define LOCKSTEP_BASE_ENCODING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"

namespace lockstep {

// Two lower-case digits a byte.
std::string HexEncode(ByteSpan bytes);

// Digits of either case, an even number of them, and nothing else.
absl::StatusOr<std::string> HexDecode(absl::string_view text);

// The standard alphabet (RFC 4648 section 4), padded.
std::string Base64Encode(ByteSpan bytes);

// The standard or the URL-safe alphabet (section 5), but not both in one text; padded in full or
// not at all; no white space, and no bits set past the last byte. So each byte string has one text
// for each alphabet and padding.
absl::StatusOr<std::string> Base64Decode(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_ENCODING_H_
