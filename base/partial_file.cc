// SPDX-License-Identifier: Apache-2.0
//
// See partial_file.h.
#include "base/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file_calls.h"
#include "base/status.h"

namespace lockstep {
namespace {

using file_internal::calls;

absl::Status SystemError(int error, absl::string_view what, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat(what, " ", path));
}

// Whether `fd` is still the file that `path` names: the holder of the lock before us may have
// renamed or removed it.
bool StillNamed(int fd, const std::string& path) {
  struct stat ours, named;
  return ::fstat(fd, &ours) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

}  // namespace

absl::StatusOr<PartialFile> PartialFile::Open(const std::string& path, uint64_t bytes_max) {
  while (true) {
    const int fd =
        calls.open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0) return SystemError(errno, "open", path);
    PartialFile file(path, fd);
    struct stat info;
    if (::fstat(fd, &info) != 0) return SystemError(errno, "stat", path);
    if (!S_ISREG(info.st_mode)) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return SystemError(errno, "lock", path);
      return absl::UnavailableError(absl::StrCat(path, " is being written by somebody else"));
    }
    if (!StillNamed(fd, path)) continue;
    if (static_cast<uint64_t>(info.st_size) > bytes_max) {
      LOCKSTEP_RETURN_IF_ERROR(file.Restart());
    } else {
      LOCKSTEP_RETURN_IF_ERROR(file.ReadBack());
    }
    return file;
  }
}

PartialFile::~PartialFile() { Close(); }

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_),
      hasher_(std::move(other.hasher_)) {}

PartialFile& PartialFile::operator=(PartialFile&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  bytes_ = other.bytes_;
  hasher_ = std::move(other.hasher_);
  return *this;
}

void PartialFile::Close() {
  if (fd_ >= 0) calls.close(std::exchange(fd_, -1));
}

absl::Status PartialFile::ReadBack() {
  std::string buffer(size_t{1} << 20, '\0');
  while (true) {
    const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(bytes_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "read", path_);
    if (got == 0) return absl::OkStatus();
    hasher_.Update(AsBytes(absl::string_view(buffer.data(), static_cast<size_t>(got))));
    bytes_ += static_cast<uint64_t>(got);
  }
}

absl::Status PartialFile::Append(ByteSpan bytes) {
  if (!bytes.empty() && ::lseek(fd_, static_cast<off_t>(bytes_), SEEK_SET) < 0) {
    return SystemError(errno, "seek in", path_);
  }
  while (!bytes.empty()) {
    const ssize_t n = calls.write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return SystemError(n == 0 ? EIO : errno, "write", path_);
    const size_t written = static_cast<size_t>(n);
    hasher_.Update(bytes.first(written));
    bytes_ += written;
    bytes = bytes.subspan(written);
  }
  return absl::OkStatus();
}

absl::Status PartialFile::Sync() {
  if (calls.fsync(fd_) != 0) return SystemError(errno, "fsync", path_);
  return absl::OkStatus();
}

absl::Status PartialFile::Restart() {
  if (::ftruncate(fd_, 0) != 0) return SystemError(errno, "truncate", path_);
  hasher_ = Sha256Hasher();
  bytes_ = 0;
  return absl::OkStatus();
}

absl::Status PartialFile::Commit(const std::string& path) {
  if (const absl::Status synced = Sync(); !synced.ok()) {
    Remove();  // never on after a failed fsync: the next may report success for lost bytes
    return synced;
  }
  if (calls.rename(path_.c_str(), path.c_str()) != 0) {
    return SystemError(errno, "rename to", path);
  }
  Close();
  return SyncDirectory(path.substr(0, path.rfind('/') + 1));
}

void PartialFile::Remove() {
  ::unlink(path_.c_str());
  Close();
}

}  // namespace lockstep
