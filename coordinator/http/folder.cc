// SPDX-License-Identifier: Apache-2.0
//
// openat, a part of the path at a time: openat2 would do it in one call, but is not to be had in
// every container and emulator.
#include "coordinator/http/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::coordinator {
namespace {

// What there is no file for is not told apart: links, pipes and folders are not served.
absl::Status OpenError(int error, absl::string_view path) {
  if (error == ELOOP || error == ENOTDIR || error == EISDIR || error == ENAMETOOLONG ||
      error == ENXIO) {
    error = ENOENT;
  }
  return absl::ErrnoToStatus(error, absl::StrCat("open ", path));
}

int OpenAt(int folder, const char* name, int flags) {
  int fd;
  do {
    fd = ::openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

OpenFile::~OpenFile() { ::close(fd_); }

absl::StatusOr<std::shared_ptr<const Folder>> Folder::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open folder ", path));
  return std::shared_ptr<const Folder>(new Folder(fd));
}

Folder::~Folder() { ::close(fd_); }

absl::StatusOr<std::shared_ptr<const OpenFile>> Folder::OpenBeneath(absl::string_view path) const {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  int folder = fd_;
  const auto close = absl::MakeCleanup([&] {
    if (folder != fd_) ::close(folder);
  });
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos) {
      return absl::NotFoundError(absl::StrCat("open ", path));
    }
    const bool last = i + 1 == parts.size();
    const int fd = OpenAt(folder, part.c_str(), last ? O_RDONLY : O_PATH | O_DIRECTORY);
    if (fd < 0) return OpenError(errno, path);
    if (!last) {
      if (folder != fd_) ::close(folder);
      folder = fd;
      continue;
    }
    struct stat info;
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(fd);
      return OpenError(ENOENT, path);
    }
    return std::make_shared<const OpenFile>(fd, static_cast<uint64_t>(info.st_size));
  }
  return OpenError(ENOENT, path);
}

}  // namespace lockstep::coordinator
