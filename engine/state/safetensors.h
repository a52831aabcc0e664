// SPDX-License-Identifier: Apache-2.0
//
// Files of tensors in the safetensors format: a length, a JSON header, the tensors' bytes one after
// another. Data only, so a file from a stranger can do no more than be wrong. Format:
// docs/checkpoint.md.
#ifndef LOCKSTEP_ENGINE_STATE_SAFETENSORS_H_
#define LOCKSTEP_ENGINE_STATE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::engine {

inline constexpr uint64_t kSafetensorsHeaderBytesMax = uint64_t{8} << 20;
inline constexpr size_t kSafetensorsTensorsMax = 65536;
inline constexpr size_t kSafetensorsRankMax = 8;
inline constexpr uint64_t kSafetensorsExtentMax = uint64_t{1} << 48;  // of a shape, and of a file

enum class TensorType { kBf16, kF32 };
inline int64_t BytesOf(TensorType type) { return type == TensorType::kBf16 ? 2 : 4; }

struct SafetensorsEntry {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // of its bytes, from the end of the header
  uint64_t end = 0;
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by begin
  std::map<std::string, std::string> metadata;
  bool operator==(const SafetensorsHeader&) const = default;
};

// The file's beginning: length and header, padded so that the data begins at a multiple of 8. Sets
// begin and end of the entries, in their order, without gaps.
std::string EncodeSafetensorsHeader(SafetensorsHeader& header);

// From the JSON of a header. Untrusted input. DataLoss unless every entry has a known type, a shape
// of at most kSafetensorsRankMax extents, and exactly the bytes that these need; the entries follow
// each other without gap or overlap; no key comes twice; nothing else is there.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json);

// An open file. Any thread may read.
class SafetensorsFile {
 public:
  // Reads and checks the header, and that the file ends where the last tensor does.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;

  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return path_; }

  // Bytes of the data, from `begin` on; within it.
  absl::Status Read(uint64_t begin, std::span<char> out) const;

 private:
  SafetensorsFile() = default;

  std::string path_;
  int fd_ = -1;
  uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_SAFETENSORS_H_
