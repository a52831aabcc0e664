// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: a byte reader driven by its own input. Each read is held against the bytes directly,
// so a wrong value or a read past the end is found, and not only a crash.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/coding.h"
#include "base/logging.h"

namespace lockstep {
namespace {

uint64_t LittleEndian(ByteSpan bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// A read of an unsigned integer of `width` bytes, and what must come of it.
template <typename T>
void CheckUnsigned(ByteReader& reader, ByteSpan input,
                   absl::StatusOr<T> (ByteReader::*read)(absl::string_view)) {
  const bool was_ok = reader.status().ok();
  const size_t offset = reader.offset();
  const bool fits = input.size() - offset >= sizeof(T);
  const absl::StatusOr<T> value = (reader.*read)("value");
  LOCKSTEP_CHECK(value.ok() == (was_ok && fits));
  LOCKSTEP_CHECK(reader.offset() == offset + (value.ok() ? sizeof(T) : 0));
  if (value.ok()) LOCKSTEP_CHECK(*value == LittleEndian(input.subspan(offset, sizeof(T))));
}

void CheckSpan(const ByteReader& reader, ByteSpan input, size_t offset, size_t prefix,
               const absl::StatusOr<ByteSpan>& bytes) {
  if (!bytes.ok()) {
    LOCKSTEP_CHECK(reader.offset() == offset);
    return;
  }
  LOCKSTEP_CHECK(bytes->data() == input.data() + offset + prefix);
  LOCKSTEP_CHECK(reader.offset() == offset + prefix + bytes->size());
  LOCKSTEP_CHECK(reader.offset() <= input.size());
}

}  // namespace
}  // namespace lockstep

// The first byte says how many reads follow, the next ones which; the rest is what they read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const size_t reads = std::min<size_t>(data[0], size - 1);
  const ByteSpan input(data + 1 + reads, size - 1 - reads);
  ByteReader reader(input);
  for (size_t i = 0; i < reads; ++i) {
    const uint8_t which = data[1 + i];
    const size_t argument = which / 7;
    const size_t offset = reader.offset();
    switch (which % 7) {
      case 0:
        CheckUnsigned(reader, input, &ByteReader::ReadU8);
        break;
      case 1:
        CheckUnsigned(reader, input, &ByteReader::ReadU16);
        break;
      case 2:
        CheckUnsigned(reader, input, &ByteReader::ReadU32);
        break;
      case 3:
        CheckUnsigned(reader, input, &ByteReader::ReadU64);
        break;
      case 4:
        CheckSpan(reader, input, offset, 0, reader.ReadFixed("bytes", argument));
        break;
      case 5: {
        const absl::StatusOr<ByteSpan> bytes = reader.ReadLengthPrefixed("bytes", argument);
        CheckSpan(reader, input, offset, 4, bytes);
        if (bytes.ok()) LOCKSTEP_CHECK(bytes->size() <= argument);
        break;
      }
      default:
        LOCKSTEP_CHECK(reader.ExpectEnd().ok() ==
                       (reader.status().ok() && reader.remaining() == 0));
    }
    if (!reader.status().ok()) LOCKSTEP_CHECK(reader.ReadU8("more").status() == reader.status());
  }
  return 0;
}
