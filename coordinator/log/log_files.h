// SPDX-License-Identifier: Apache-2.0
//
// The published files of the log: whole and on the disk, with the directories that lead to them.

#ifndef LOCKSTEP_COORDINATOR_LOG_LOG_FILES_H_
#define LOCKSTEP_COORDINATOR_LOG_LOG_FILES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/log/stage.h"

namespace lockstep::coordinator {

// Not for several threads at once.
class LogFiles {
 public:
  // Beneath `directory`, which must exist and itself be on the disk.
  explicit LogFiles(std::string directory) : directory_(std::move(directory)) {}

  std::string PathOf(const std::string& path) const { return directory_ + "/" + path; }

  // On the disk when OK. What was there under this name is replaced; it is the same unless a crash
  // cut it off.
  absl::Status Write(const LogFile& file);

  // Removes the partial tiles of every tile that `files` have in full: whoever asks for one of them
  // can have the full one. Not brought to the disk: what comes back is harmless.
  void RemovePartialsOf(const std::vector<LogFile>& files);

  // Removes what a crash left half-written beside `files`.
  void RemoveRubbishBeside(const std::vector<LogFile>& files);

 private:
  absl::Status MakeDurableDirectory(const std::string& path);

  const std::string directory_;
  // Directories, by path beneath directory_, whose names this process has brought to the disk. One
  // that exists may have been made by a process that crashed before it did so.
  absl::flat_hash_set<std::string> durable_;
};

// fsync of a directory.
absl::Status SyncDirectory(const std::string& path);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_LOG_LOG_FILES_H_
