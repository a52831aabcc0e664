// SPDX-License-Identifier: Apache-2.0
//
// Coding of shard indices and names. See shard_index.h.
#include "engine/data/shard_index.h"

#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

constexpr absl::string_view kIndexMagic = "LSINDEX1";
constexpr absl::string_view kNamesMagic = "LSNAMES1";
constexpr uint64_t kHeaderBytes = 24;  // magic, documents, tokens or bytes of text

absl::Status Expect(absl::string_view what, uint64_t offset, uint64_t expected, uint64_t found) {
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("offset ", offset, ": ", what, ": expected ", expected, ", found ", found));
}

// The header, and that `bytes` have the size it implies; all that follows may then be read
// unchecked.
absl::Status CheckHeader(ByteSpan bytes, absl::string_view magic, uint64_t documents,
                         uint64_t size) {
  LOCKSTEP_RETURN_IF_ERROR(Expect("size of the file", 0, size, bytes.size()));
  if (AsChars(bytes.first(magic.size())) != magic) {
    return absl::DataLossError(absl::StrCat("offset 0: expected ", magic, ", found other bytes"));
  }
  ByteReader reader(bytes.subspan(8));
  return Expect("documents", 8, documents, reader.ReadU64("documents").value_or(0));
}

uint64_t LittleEndian(ByteSpan bytes, uint64_t offset, int width) {
  uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) value = value << 8 | bytes[offset + i];
  return value;
}

}  // namespace

uint64_t ShardIndexBytes(uint64_t documents) { return kHeaderBytes + 4 * (documents + 1); }

uint64_t ShardNamesBytes(uint64_t documents, uint64_t text_bytes) {
  return kHeaderBytes + 4 * (documents + 1) + text_bytes;
}

std::string EncodeShardIndex(const std::vector<uint32_t>& begins) {
  ByteWriter writer;
  writer.WriteFixed(AsBytes(kIndexMagic));
  writer.WriteU64(begins.size() - 1);
  writer.WriteU64(begins.back());
  for (uint32_t begin : begins) writer.WriteU32(begin);
  return writer.Take();
}

std::string EncodeShardNames(const std::vector<std::string>& names) {
  uint64_t text_bytes = 0;
  for (const std::string& name : names) text_bytes += name.size();
  ByteWriter writer;
  writer.WriteFixed(AsBytes(kNamesMagic));
  writer.WriteU64(names.size());
  writer.WriteU64(text_bytes);
  uint32_t end = 0;
  writer.WriteU32(end);
  for (const std::string& name : names) writer.WriteU32(end += static_cast<uint32_t>(name.size()));
  for (const std::string& name : names) writer.WriteFixed(AsBytes(name));
  return writer.Take();
}

absl::StatusOr<ShardIndex> ParseShardIndex(ByteSpan bytes, uint64_t documents, uint64_t tokens) {
  LOCKSTEP_RETURN_IF_ERROR(CheckHeader(bytes, kIndexMagic, documents, ShardIndexBytes(documents)));
  LOCKSTEP_RETURN_IF_ERROR(Expect("tokens", 16, tokens, LittleEndian(bytes, 16, 8)));
  ShardIndex index;
  index.begins.resize(documents + 1);
  for (uint64_t i = 0; i <= documents; ++i) {
    const uint64_t offset = kHeaderBytes + 4 * i;
    index.begins[i] = static_cast<uint32_t>(LittleEndian(bytes, offset, 4));
    if (i > 0 && index.begins[i] <= index.begins[i - 1]) {
      return absl::DataLossError(absl::StrCat("offset ", offset, ": document ", i,
                                              ": expected a beginning above ", index.begins[i - 1],
                                              ", found ", index.begins[i]));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(Expect("first beginning", kHeaderBytes, 0, index.begins.front()));
  LOCKSTEP_RETURN_IF_ERROR(Expect("end of the last document", kHeaderBytes + 4 * documents, tokens,
                                  index.begins.back()));
  return index;
}

absl::StatusOr<std::vector<std::string>> ParseShardNames(ByteSpan bytes, uint64_t documents) {
  if (bytes.size() < ShardNamesBytes(documents, 0)) {
    return Expect("size of the file, at least", 0, ShardNamesBytes(documents, 0), bytes.size());
  }
  const uint64_t text_begin = ShardNamesBytes(documents, 0);
  const uint64_t text_bytes = bytes.size() - text_begin;
  LOCKSTEP_RETURN_IF_ERROR(CheckHeader(bytes, kNamesMagic, documents, bytes.size()));
  LOCKSTEP_RETURN_IF_ERROR(Expect("bytes of names", 16, text_bytes, LittleEndian(bytes, 16, 8)));
  std::vector<std::string> names;
  names.reserve(documents);
  uint64_t begin = 0;
  for (uint64_t i = 0; i <= documents; ++i) {
    const uint64_t offset = kHeaderBytes + 4 * i;
    const uint64_t end = LittleEndian(bytes, offset, 4);
    if (end < begin || end > text_bytes || (i == 0 && end != 0)) {
      return absl::DataLossError(absl::StrCat("offset ", offset, ": expected ", i == 0 ? 0 : begin,
                                              " to ", i == 0 ? 0 : text_bytes, ", found ", end));
    }
    if (i > 0) names.push_back(ToString(bytes.subspan(text_begin + begin, end - begin)));
    begin = end;
  }
  LOCKSTEP_RETURN_IF_ERROR(Expect("end of the last name", text_begin - 4, text_bytes, begin));
  return names;
}

}  // namespace lockstep::engine
