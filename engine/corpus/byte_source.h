// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an input file, decompressed on the way if its name ends in .gz or .zst. A damaged
// file is an error (DataLoss) that names it and the offset; so is one that grows to more than a
// text would (a decompression bomb).
#ifndef LOCKSTEP_ENGINE_CORPUS_BYTE_SOURCE_H_
#define LOCKSTEP_ENGINE_CORPUS_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/sha256.h"

namespace lockstep::engine {

struct DecompressionLimits {
  // More than so many bytes out for each byte in are refused, once 16 MiB are out.
  int64_t ratio_max = 256;
  // zstd's window: its memory is 2 to this power in bytes.
  int zstd_window_log_max = 27;
};

// Read from front to end. Memory: some hundred KiB, and zstd's window. Not for several threads at
// once.
class ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path,
                                                          const DecompressionLimits& limits);
  virtual ~ByteSource() = default;

  // Up to `size` bytes, at least one unless the end is reached.
  virtual absl::StatusOr<size_t> Read(char* out, size_t size) = 0;

  // Of the file as it lies, as far as it was read; after the end, of the whole.
  virtual int64_t file_bytes() const = 0;
  // Called once, after the end.
  virtual Digest FinishFileDigest() = 0;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_BYTE_SOURCE_H_
