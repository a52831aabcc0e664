// SPDX-License-Identifier: Apache-2.0
//
// Little-endian coding for the project's binary formats: a writer that appends, and a reader that
// never leaves its input, whatever the bytes say. Not a serialisation scheme: each format's page in
// docs/ gives its fields, and its code calls these in that order.
//
//   u8 u16 u32 u64   unsigned, little-endian         i64        two's complement
//   f32 f64          the bits of IEEE binary32, binary64, NaN payloads too
//   fixed            bytes of a length both sides know
//   length-prefixed  a u32 length, then that many bytes

#ifndef LOCKSTEP_BASE_CODING_H_
#define LOCKSTEP_BASE_CODING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"

namespace lockstep {

class ByteWriter {
 public:
  void WriteU8(uint8_t value) { Write(value, 1); }
  void WriteU16(uint16_t value) { Write(value, 2); }
  void WriteU32(uint32_t value) { Write(value, 4); }
  void WriteU64(uint64_t value) { Write(value, 8); }
  void WriteI64(int64_t value) { Write(static_cast<uint64_t>(value), 8); }
  void WriteF32(float value);
  void WriteF64(double value);
  void WriteFixed(ByteSpan bytes) { bytes_.append(bytes.begin(), bytes.end()); }
  // At most 2^32 - 1 bytes (checked).
  void WriteLengthPrefixed(ByteSpan bytes);

  const std::string& bytes() const { return bytes_; }
  // What was written; the writer is then empty.
  std::string Take() { return std::exchange(bytes_, {}); }

 private:
  void Write(uint64_t value, int width);

  std::string bytes_;
};

// Reads fields off the front of `input`, which must outlive the reader and the spans it returns.
//
// A read either gives the whole field and moves past it, or gives an InvalidArgument error and
// moves nowhere. The error names the field (`what`), its offset, the bytes wanted and the bytes
// left. After an error every read gives that same error, so a caller may look at the last one only.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan input) : input_(input) {}

  absl::StatusOr<uint8_t> ReadU8(absl::string_view what);
  absl::StatusOr<uint16_t> ReadU16(absl::string_view what);
  absl::StatusOr<uint32_t> ReadU32(absl::string_view what);
  absl::StatusOr<uint64_t> ReadU64(absl::string_view what);
  absl::StatusOr<int64_t> ReadI64(absl::string_view what);
  absl::StatusOr<float> ReadF32(absl::string_view what);
  absl::StatusOr<double> ReadF64(absl::string_view what);
  absl::StatusOr<ByteSpan> ReadFixed(absl::string_view what, size_t size);
  // Refuses a length above `bytes_max`, whether or not the input is that long.
  absl::StatusOr<ByteSpan> ReadLengthPrefixed(absl::string_view what, size_t bytes_max);

  // OK if nothing is left, else an error, as for a read.
  absl::Status ExpectEnd();

  // The first error, or OK.
  const absl::Status& status() const { return status_; }
  // Bytes read so far, and bytes not read.
  size_t offset() const { return offset_; }
  size_t remaining() const { return input_.size() - offset_; }

 private:
  template <typename T>
  absl::StatusOr<T> ReadUnsigned(absl::string_view what);
  // `size` bytes from `skip` bytes ahead, moving nowhere.
  absl::StatusOr<ByteSpan> Peek(absl::string_view what, size_t skip, size_t size);
  absl::Status Fail(absl::string_view message);

  ByteSpan input_;
  size_t offset_ = 0;
  absl::Status status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_CODING_H_
