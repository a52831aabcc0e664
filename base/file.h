// SPDX-License-Identifier: Apache-2.0
//
// Files that are whole or not there: written under a temporary name, brought to the disk, then
// given their own name. Whatever fails, a file that had the name before is untouched, and unless
// the machine goes down the temporary one is removed. POSIX file systems with an atomic rename.
//
// Errors carry the path and the system's reason, with absl::ErrnoToStatus's code for it (NotFound,
// PermissionDenied, ResourceExhausted for a full disk, ...).

#ifndef LOCKSTEP_BASE_FILE_H_
#define LOCKSTEP_BASE_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep {

// The bytes of a regular file (or of what a symbolic link leads to). More than `bytes_max` is
// ResourceExhausted, anything but a regular file FailedPrecondition, found without waiting on it.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);

// The SHA-256 of a regular file; `read` hears of its bytes as they go by.
absl::StatusOr<Digest> FileDigest(const std::string& path,
                                  absl::FunctionRef<void(int64_t bytes)> read);

// A file in the making. Move-only; not for several threads at once.
class DurableFile {
 public:
  // Starts a file that Commit will call `path`, in a directory that exists. `mode` are the
  // permission bits, less the umask; 0600 for secrets. Its name meanwhile is .lockstep-PID-N.tmp in
  // the same directory: one found there after a crash, with no such process, is rubbish.
  static absl::StatusOr<DurableFile> Create(const std::string& path, mode_t mode = 0666);

  // Without Commit, removes the temporary file.
  ~DurableFile();
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&& other) noexcept;

  // Writes all of `bytes` at the end. After an error nothing more is written, and every call gives
  // that error. Unbuffered: better few large pieces than many small ones.
  absl::Status Append(ByteSpan bytes);

  // Brings the file and its name to the disk: fsync, rename, fsync of the directory. A file of that
  // name, or a symbolic link (not what it leads to), is replaced at once; a directory is an error.
  // After an error nothing is tried again, since a second fsync may report success for data that
  // the first has lost. If only the directory's fsync failed, the new file has its name, but may
  // lose it should the power fail; the error says so. Called once, as the last thing.
  absl::Status Commit();

  // Commit without the disk: whole or not there as far as processes can see, and perhaps neither
  // after the power fails. For what can be made again or done without.
  absl::Status Rename();

 private:
  DurableFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  absl::Status Fail(int error, const std::string& what);
  void Abandon();

  std::string path_;
  // Empty once it is renamed or removed.
  std::string temporary_;
  int fd_ = -1;
  absl::Status status_;
};

// The file whole or not at all as far as processes can see, but not brought to the disk: for what
// can be made again or done without.
absl::Status WriteFileAtOnce(const std::string& path, ByteSpan bytes, mode_t mode = 0666);

// Create, Append and Commit in one.
absl::Status WriteFileDurably(const std::string& path, ByteSpan bytes, mode_t mode = 0666);

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_FILE_H_
