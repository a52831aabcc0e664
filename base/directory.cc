// SPDX-License-Identifier: Apache-2.0
//
// Directories over std::filesystem, and fsync where it matters.
#include "base/directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

absl::Status Failure(const std::error_code& error, absl::string_view what,
                     const std::string& path) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(what, " ", path));
}

}  // namespace

absl::Status SyncDirectory(const std::string& path) {
  const int fd = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("bring to the disk ", path));
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return Failure(error, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<int64_t> FileBytes(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  }
  if (error) return Failure(error, "stat", path);
  if (status.type() != fs::file_type::regular) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) return Failure(error, "stat", path);
  return static_cast<int64_t>(bytes);
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return Failure(error, "create", path);
  return absl::OkStatus();
}

absl::Status RemoveDirectory(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return Failure(error, "remove", path);
  return absl::OkStatus();
}

absl::StatusOr<DurableDirectory> DurableDirectory::Create(const std::string& path) {
  static std::atomic<uint64_t> count{0};
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists already"));
  }
  const std::string temporary = absl::StrCat(path.substr(0, path.rfind('/') + 1), ".lockstep-",
                                             getpid(), "-d", ++count, ".tmp");
  if (!fs::create_directory(temporary, error)) return Failure(error, "create", temporary);
  return DurableDirectory(path, temporary);
}

DurableDirectory::~DurableDirectory() { Abandon(); }

DurableDirectory::DurableDirectory(DurableDirectory&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

DurableDirectory& DurableDirectory::operator=(DurableDirectory&& other) noexcept {
  if (this == &other) return *this;
  Abandon();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  return *this;
}

void DurableDirectory::Abandon() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  temporary_.clear();
}

absl::Status DurableDirectory::Commit() {
  LOCKSTEP_RETURN_IF_ERROR(SyncDirectory(temporary_));
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("rename ", temporary_, " to ", path_));
  }
  temporary_.clear();
  return SyncDirectory(path_.substr(0, path_.rfind('/') + 1));
}

}  // namespace lockstep
