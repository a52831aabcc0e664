// SPDX-License-Identifier: Apache-2.0
//
// A directory for one process at a time: flock on a file "lock" in it, which the system releases
// when the process ends, however it ends.
#ifndef LOCKSTEP_BASE_DIRECTORY_LOCK_H_
#define LOCKSTEP_BASE_DIRECTORY_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace lockstep {

// Move-only; held until it is destroyed.
class DirectoryLock {
 public:
  // The directory exists. FailedPrecondition if somebody holds it, this process included.
  static absl::StatusOr<DirectoryLock> Take(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_DIRECTORY_LOCK_H_
