// SPDX-License-Identifier: Apache-2.0
//
// A run on disk:
//
//   run.json              the manifest, whose SHA-256 is the run's id
//   places.json           where corpus and tokenizer lie on this machine; no part of the run
//   steps.log             the step records (audit/step_log.h)
//   leaves/00000012       the leaves of step 12 (audit/step_leaves.h)
//   checkpoints/00000100  the state before step 100 (state/checkpoint.h)
//   metrics.jsonl, events.out.tfevents.*   for people
#ifndef LOCKSTEP_ENGINE_RUN_RUN_FOLDER_H_
#define LOCKSTEP_ENGINE_RUN_RUN_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "audit/step_leaves.h"
#include "base/sha256.h"

namespace lockstep::engine {

// Where a run's inputs are here.
struct RunPlaces {
  std::vector<std::string> corpus;  // folders or addresses, as CorpusLocation::places
  std::string tokenizer;            // file
  std::string parent;               // folder of the parent's run; empty if there is none
  bool operator==(const RunPlaces&) const = default;
};

class RunFolder {
 public:
  // Makes the folder, which must not exist or be empty, durably.
  static absl::StatusOr<RunFolder> Create(const std::string& path,
                                          const audit::RunManifest& manifest,
                                          const RunPlaces& places);
  static absl::StatusOr<RunFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const audit::RunManifest& manifest() const { return manifest_; }
  const Digest& run_id() const { return run_id_; }
  const RunPlaces& places() const { return places_; }

  std::string StepLogPath() const { return path_ + "/steps.log"; }
  std::string MetricsPath() const { return path_ + "/metrics.jsonl"; }
  std::string CheckpointPath(uint64_t step) const;
  std::string LeavesPath(uint64_t step) const;

  // Steps before which a whole checkpoint stands, ascending.
  absl::StatusOr<std::vector<uint64_t>> Checkpoints() const;

  absl::Status WriteLeaves(const audit::StepLeaves& leaves) const;
  // NotFound if they were not kept.
  absl::StatusOr<audit::StepLeaves> ReadLeaves(uint64_t step) const;
  absl::Status RemoveLeaves(uint64_t step) const;

 private:
  RunFolder() = default;

  std::string path_;
  audit::RunManifest manifest_;
  Digest run_id_;
  RunPlaces places_;
};

// Held while a process writes to a run folder. FailedPrecondition if another one does.
class RunLock {
 public:
  static absl::StatusOr<RunLock> Acquire(const RunFolder& folder);
  ~RunLock();
  RunLock(RunLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  RunLock& operator=(RunLock&&) = delete;

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_RUN_FOLDER_H_
