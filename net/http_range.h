// SPDX-License-Identifier: Apache-2.0
//
// Byte ranges in HTTP (RFC 9110 section 14): what a request asks for, and what a message says it
// carries. Texts come from strangers. Shared by our client and our server; no network in here.
#ifndef LOCKSTEP_NET_HTTP_RANGE_H_
#define LOCKSTEP_NET_HTTP_RANGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::net {

// Digits only, at least one, of a number that fits; nullopt for anything else.
std::optional<uint64_t> ParseDecimal(absl::string_view text);

// What a Range header means for a file of `size` bytes.
struct RangeRequest {
  enum Kind {
    kWhole,  // no header, or one that is to be ignored: another unit, bad text, several ranges
    kPart,   // bytes begin ... begin + size - 1, at least one
    kUnsatisfiable  // well-formed, but no byte of the file is in it: an answer of 416
  } kind = kWhole;
  uint64_t begin = 0;
  uint64_t size = 0;
  bool operator==(const RangeRequest&) const = default;
};
RangeRequest ParseRange(absl::string_view header, uint64_t size);

// A Content-Range of bytes: "bytes 0-99/1000", "bytes 0-99/*", "bytes */1000".
struct ContentRange {
  std::optional<uint64_t> first = std::nullopt;  // with last: both, or neither
  std::optional<uint64_t> last = std::nullopt;   // first <= last
  std::optional<uint64_t> total = std::nullopt;  // last < total; always there without first
  bool operator==(const ContentRange&) const = default;
};
// InvalidArgument for anything but one of the three forms above, exactly.
absl::StatusOr<ContentRange> ParseContentRange(absl::string_view text);
std::string FormatContentRange(const ContentRange& range);

}  // namespace lockstep::net

#endif  // LOCKSTEP_NET_HTTP_RANGE_H_
