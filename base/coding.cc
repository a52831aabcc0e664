// SPDX-License-Identifier: Apache-2.0
//
// Little-endian coding, byte by byte, so that the machine's own order never shows. See coding.h.

#include "base/coding.h"

#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep {
namespace {

uint64_t LittleEndian(ByteSpan bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

// A value by its bits: a conversion could lose a NaN's payload.
template <typename To, typename From>
absl::StatusOr<To> BitCast(const absl::StatusOr<From>& bits) {
  if (!bits.ok()) return bits.status();
  return std::bit_cast<To>(*bits);
}

}  // namespace

void ByteWriter::WriteF32(float value) { WriteU32(std::bit_cast<uint32_t>(value)); }

void ByteWriter::WriteF64(double value) { WriteU64(std::bit_cast<uint64_t>(value)); }

void ByteWriter::WriteLengthPrefixed(ByteSpan bytes) {
  LOCKSTEP_CHECK(bytes.size() <= std::numeric_limits<uint32_t>::max(),
                 "{} bytes do not fit a 32-bit length", bytes.size());
  WriteU32(static_cast<uint32_t>(bytes.size()));
  WriteFixed(bytes);
}

void ByteWriter::Write(uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
}

absl::StatusOr<uint8_t> ByteReader::ReadU8(absl::string_view what) {
  return ReadUnsigned<uint8_t>(what);
}

absl::StatusOr<uint16_t> ByteReader::ReadU16(absl::string_view what) {
  return ReadUnsigned<uint16_t>(what);
}

absl::StatusOr<uint32_t> ByteReader::ReadU32(absl::string_view what) {
  return ReadUnsigned<uint32_t>(what);
}

absl::StatusOr<uint64_t> ByteReader::ReadU64(absl::string_view what) {
  return ReadUnsigned<uint64_t>(what);
}

absl::StatusOr<int64_t> ByteReader::ReadI64(absl::string_view what) {
  return BitCast<int64_t>(ReadU64(what));
}

absl::StatusOr<float> ByteReader::ReadF32(absl::string_view what) {
  return BitCast<float>(ReadU32(what));
}

absl::StatusOr<double> ByteReader::ReadF64(absl::string_view what) {
  return BitCast<double>(ReadU64(what));
}

absl::StatusOr<ByteSpan> ByteReader::ReadFixed(absl::string_view what, size_t size) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan bytes, Peek(what, 0, size));
  offset_ += size;
  return bytes;
}

absl::StatusOr<ByteSpan> ByteReader::ReadLengthPrefixed(absl::string_view what, size_t bytes_max) {
  constexpr size_t kPrefix = sizeof(uint32_t);
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan prefix, Peek(what, 0, kPrefix));
  const uint64_t size = LittleEndian(prefix);
  if (size > bytes_max) {
    return Fail(absl::StrCat(what, " at offset ", offset_, " claims ", size,
                             " bytes, more than the ", bytes_max, " allowed"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan bytes, Peek(what, kPrefix, size));
  offset_ += kPrefix + size;
  return bytes;
}

absl::Status ByteReader::ExpectEnd() {
  if (status_.ok() && remaining() != 0) {
    return Fail(absl::StrCat("expected the end at offset ", offset_, ", found ", remaining(),
                             " more bytes"));
  }
  return status_;
}

template <typename T>
absl::StatusOr<T> ByteReader::ReadUnsigned(absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan bytes, ReadFixed(what, sizeof(T)));
  return static_cast<T>(LittleEndian(bytes));
}

absl::StatusOr<ByteSpan> ByteReader::Peek(absl::string_view what, size_t skip, size_t size) {
  if (!status_.ok()) return status_;
  const size_t left = remaining() - skip;
  if (size > left) {
    return Fail(absl::StrCat(what, " at offset ", offset_ + skip, " wants ", size,
                             " bytes, but only ", left, " are left"));
  }
  return input_.subspan(offset_ + skip, size);
}

absl::Status ByteReader::Fail(absl::string_view message) {
  status_ = absl::InvalidArgumentError(message);
  return status_;
}

}  // namespace lockstep
