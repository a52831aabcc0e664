// SPDX-License-Identifier: Apache-2.0
//
// Rechecks a corpus folder from the manifest down to the last token (`lockstep corpus verify`).
// Shares no code with the writer but the formats.
#ifndef LOCKSTEP_ENGINE_DATA_VERIFY_H_
#define LOCKSTEP_ENGINE_DATA_VERIFY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "engine/data/manifest.h"

namespace lockstep::engine {

struct VerifyReport {
  Digest manifest;
  uint64_t files = 0;  // of shards
  uint64_t bytes = 0;
  uint64_t chunks = 0;
  uint64_t documents = 0;
  uint64_t tokens = 0;
};

struct VerifyHooks {
  absl::FunctionRef<void(int64_t bytes)> progress;
  absl::FunctionRef<bool()> interrupted;
};

// Checked, shard after shard in the manifest's order: the chunk digests against the root; the token
// file's size and each of its chunks; every file's digest; index and names; that each document ends
// in the separator, which is nowhere else, and that tokens are below the vocabulary's size. The
// first thing that is wrong, whatever the number of threads, is the error: DataLoss with file,
// chunk, byte offset, expected and found. With `manifest`, the manifest must have that digest.
absl::StatusOr<VerifyReport> VerifyCorpus(const std::string& folder,
                                          const std::optional<Digest>& manifest, ThreadPool& pool,
                                          const VerifyHooks& hooks);

// Of all files that VerifyCorpus reads, for a progress bar.
uint64_t CorpusBytes(const CorpusManifest& manifest);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_VERIFY_H_
