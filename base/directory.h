// SPDX-License-Identifier: Apache-2.0
//
// Directories that are whole or not there, as base/file.h has it for files; and what is in one.
// Errors carry the path and the system's reason.
#ifndef LOCKSTEP_BASE_DIRECTORY_H_
#define LOCKSTEP_BASE_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// The names in a directory but "." and "..", sorted as bytes.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Size of a regular file (or of what a symbolic link leads to); FailedPrecondition for anything
// else.
absl::StatusOr<int64_t> FileBytes(const std::string& path);

// The directory and those above it, as far as they are not there. An existing one is no error.
absl::Status MakeDirectories(const std::string& path);

// Removes a directory with everything in it, following no links. One that is not there is no error.
absl::Status RemoveDirectory(const std::string& path);

// Brings the names in a directory to the disk; "" is the working directory.
absl::Status SyncDirectory(const std::string& path);

// A directory in the making. Move-only.
class DurableDirectory {
 public:
  // Starts a directory that Commit will call `path`, which must not exist, in a directory that
  // does. Its name meanwhile is .lockstep-PID-N.tmp beside it.
  static absl::StatusOr<DurableDirectory> Create(const std::string& path);
  // Without Commit, removes the temporary directory and what is in it.
  ~DurableDirectory();
  DurableDirectory(DurableDirectory&& other) noexcept;
  DurableDirectory& operator=(DurableDirectory&& other) noexcept;

  // Where to put the files, each durably.
  const std::string& temporary() const { return temporary_; }

  // Brings the directory and its name to the disk: fsync, rename, fsync of the one above. Called
  // once, as the last thing.
  absl::Status Commit();

 private:
  DurableDirectory(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}
  void Abandon();

  std::string path_;
  std::string temporary_;  // empty once it is renamed or removed
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_DIRECTORY_H_
