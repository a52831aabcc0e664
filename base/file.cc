// SPDX-License-Identifier: Apache-2.0
//
// Durable files over POSIX calls. See file.h.

#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file_calls.h"
#include "base/status.h"

namespace lockstep {
namespace {

using file_internal::calls;

absl::Status SystemError(int error, absl::string_view what, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat(what, " ", path));
}

int OpenRetrying(const char* path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = calls.open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// Reads until `size` bytes or the end of the file; the count, or -1.
ssize_t ReadUpTo(int fd, char* bytes, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(fd, bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

// The directory part of `path`, with its slash; empty for the working directory.
std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// Open for reading; the caller closes fd.
struct RegularFile {
  int fd;
  off_t size;
};
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int fd = OpenRetrying(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (fd < 0) return SystemError(errno, "open", path);
  auto close = absl::MakeCleanup([fd] { ::close(fd); });
  struct stat info;
  if (::fstat(fd, &info) != 0) return SystemError(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  std::move(close).Cancel();
  return RegularFile{.fd = fd, .size = info.st_size};
}

// A name no other process or call uses. Not made of the file's own, which may be as long as the
// file system allows.
std::string TemporaryName(const std::string& path) {
  static std::atomic<uint64_t> count{0};
  return absl::StrCat(DirectoryOf(path), ".lockstep-", ::getpid(), "-", ++count, ".tmp");
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  const auto close = absl::MakeCleanup([&] { ::close(file.fd); });
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has more than the ", bytes_max, " bytes allowed"));
  };
  if (static_cast<uint64_t>(file.size) > bytes_max) return too_large();
  // The size is a hint: the file may change meanwhile, and in /proc it is 0. So read to the end, in
  // steps, with one byte more than stated to see it.
  std::string bytes;
  size_t step = static_cast<size_t>(file.size) + 1;
  while (true) {
    const size_t done = bytes.size();
    bytes.resize(done + step);
    const ssize_t n = ReadUpTo(file.fd, bytes.data() + done, step);
    if (n < 0) return SystemError(errno, "read", path);
    bytes.resize(done + static_cast<size_t>(n));
    if (bytes.size() > bytes_max) return too_large();
    if (static_cast<size_t>(n) < step) return bytes;
    step = std::max<size_t>(4096, bytes.size());
  }
}

absl::StatusOr<Digest> FileDigest(const std::string& path,
                                  absl::FunctionRef<void(int64_t bytes)> read) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  const auto close = absl::MakeCleanup([&] { ::close(file.fd); });
  Sha256Hasher hasher;
  std::string buffer(size_t{4} << 20, '\0');
  while (true) {
    const ssize_t got = ReadUpTo(file.fd, buffer.data(), buffer.size());
    if (got < 0) return SystemError(errno, "read", path);
    if (got == 0) return hasher.Finish();
    hasher.Update(AsBytes(absl::string_view(buffer.data(), static_cast<size_t>(got))));
    read(got);
  }
}

absl::StatusOr<DurableFile> DurableFile::Create(const std::string& path, mode_t mode) {
  if (path.empty() || path.back() == '/') {
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" does not name a file"));
  }
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a directory, and cannot be replaced by a file"));
  }
  // A name may be taken by a process that crashed, had the same number, and left it.
  while (true) {
    std::string temporary = TemporaryName(path);
    const int fd = OpenRetrying(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode);
    if (fd >= 0) return DurableFile(path, std::move(temporary), fd);
    if (errno != EEXIST) {
      return SystemError(errno, absl::StrCat("create ", temporary, " for"), path);
    }
  }
}

DurableFile::~DurableFile() { Abandon(); }

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      status_(std::move(other.status_)) {}

DurableFile& DurableFile::operator=(DurableFile&& other) noexcept {
  if (this != &other) {
    Abandon();
    path_ = std::move(other.path_);
    temporary_ = std::exchange(other.temporary_, {});
    fd_ = std::exchange(other.fd_, -1);
    status_ = std::move(other.status_);
  }
  return *this;
}

absl::Status DurableFile::Append(ByteSpan bytes) {
  while (status_.ok() && !bytes.empty()) {
    const ssize_t n = calls.write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Fail(n == 0 ? EIO : errno, "write");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return status_;
}

absl::Status DurableFile::Commit() {
  if (!status_.ok()) return status_;
  if (calls.fsync(fd_) != 0) return Fail(errno, "fsync");
  LOCKSTEP_RETURN_IF_ERROR(Rename());

  const std::string directory = DirectoryOf(path_);
  const int fd = OpenRetrying(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY);
  const bool synced = fd >= 0 && calls.fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) calls.close(fd);
  if (synced) return absl::OkStatus();
  return Fail(error, "fsync the directory, and so perhaps not keep the name, of");
}

absl::Status DurableFile::Rename() {
  if (!status_.ok()) return status_;
  // Some file systems report a failed write only here.
  if (calls.close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return Fail(errno, "close");
  if (calls.rename(temporary_.c_str(), path_.c_str()) != 0) return Fail(errno, "rename to");
  temporary_.clear();
  status_ = absl::FailedPreconditionError(absl::StrCat(path_, " is committed already"));
  return absl::OkStatus();
}

absl::Status DurableFile::Fail(int error, const std::string& what) {
  status_ = SystemError(error, what, path_);
  Abandon();
  return status_;
}

void DurableFile::Abandon() {
  if (fd_ >= 0) calls.close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(std::exchange(temporary_, {}).c_str());
}

absl::Status WriteFileDurably(const std::string& path, ByteSpan bytes, mode_t mode) {
  LOCKSTEP_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(path, mode));
  LOCKSTEP_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

absl::Status WriteFileAtOnce(const std::string& path, ByteSpan bytes, mode_t mode) {
  LOCKSTEP_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(path, mode));
  LOCKSTEP_RETURN_IF_ERROR(file.Append(bytes));
  return file.Rename();
}

}  // namespace lockstep
