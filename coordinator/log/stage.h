// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint brings with it, in one file that lies on the disk before the checkpoint counts:
// all files that the log then needs and does not have. So whoever finds the checkpoint can finish
// the work of whoever signed it. Layout (base/coding.h), for this program alone:
//
//   fixed 8   "LkStage1"
//   u64       size of the log before; u64 size after; fixed 32 root after
//   u32       files; each: length-prefixed path, length-prefixed bytes
//   fixed 32  SHA-256 of all that

#ifndef LOCKSTEP_COORDINATOR_LOG_STAGE_H_
#define LOCKSTEP_COORDINATOR_LOG_STAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep::coordinator {

// A file of the published log, by its path there, such as "tile/0/x001/067.p/8".
struct LogFile {
  std::string path;
  std::string bytes;

  bool operator==(const LogFile&) const = default;
};

struct Stage {
  uint64_t size_before = 0;
  uint64_t size = 0;
  Digest root;
  std::vector<LogFile> files;

  bool operator==(const Stage&) const = default;
};

std::string EncodeStage(const Stage& stage);
// DataLoss unless it is what EncodeStage writes, with paths that stay beneath a directory.
absl::StatusOr<Stage> DecodeStage(ByteSpan bytes);

// "<size>-<root in hex>": one for each checkpoint that there can be.
std::string StageName(uint64_t size, const Digest& root);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_LOG_STAGE_H_
