// SPDX-License-Identifier: Apache-2.0
//
// Any text as a Range or Content-Range header: what is accepted lies within the file, and a content
// range is written back as the bytes it was read from, but for leading zeros.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/logging.h"
#include "net/http_range.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace net = lockstep::net;
  uint64_t file_bytes = 0;
  if (size < sizeof(file_bytes)) return 0;
  std::memcpy(&file_bytes, data, sizeof(file_bytes));
  const absl::string_view text =
      lockstep::AsChars({data + sizeof(file_bytes), size - sizeof(file_bytes)});
  const net::RangeRequest range = net::ParseRange(text, file_bytes);
  if (range.kind == net::RangeRequest::kPart) {
    LOCKSTEP_CHECK(range.size > 0 && range.begin < file_bytes &&
                   range.size <= file_bytes - range.begin);
  } else {
    LOCKSTEP_CHECK(range.begin == 0 && range.size == 0);
  }
  const absl::StatusOr<net::ContentRange> content = net::ParseContentRange(text);
  if (!content.ok()) return 0;
  LOCKSTEP_CHECK(content->first.has_value() == content->last.has_value());
  LOCKSTEP_CHECK(!content->first || (*content->first <= *content->last));
  LOCKSTEP_CHECK(!content->first || !content->total || *content->last < *content->total);
  const absl::StatusOr<net::ContentRange> again =
      net::ParseContentRange(net::FormatContentRange(*content));
  LOCKSTEP_CHECK(again.ok() && *again == *content);
  return 0;
}
