// SPDX-License-Identifier: Apache-2.0
//
// Files and directories on the disk. See log_files.h.

#include "coordinator/log/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

// "tile/0" of "tile/0/001"; empty of "checkpoint".
std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

absl::Status SyncDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  const auto close = absl::MakeCleanup([fd] { ::close(fd); });
  if (::fsync(fd) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("fsync ", path));
  return absl::OkStatus();
}

absl::Status LogFiles::MakeDurableDirectory(const std::string& path) {
  if (path.empty() || durable_.contains(path)) return absl::OkStatus();
  const std::string parent = ParentOf(path);
  LOCKSTEP_RETURN_IF_ERROR(MakeDurableDirectory(parent));
  const std::string whole = PathOf(path);
  if (::mkdir(whole.c_str(), 0777) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("make directory ", whole));
  }
  LOCKSTEP_RETURN_IF_ERROR(SyncDirectory(parent.empty() ? directory_ : PathOf(parent)));
  durable_.insert(path);
  return absl::OkStatus();
}

absl::Status LogFiles::Write(const LogFile& file) {
  LOCKSTEP_RETURN_IF_ERROR(MakeDurableDirectory(ParentOf(file.path)));
  return WriteFileDurably(PathOf(file.path), AsBytes(file.bytes));
}

void LogFiles::RemovePartialsOf(const std::vector<LogFile>& files) {
  for (const LogFile& file : files) {
    if (absl::StrContains(file.path, ".p/")) continue;
    const std::string partials = file.path + ".p";
    durable_.erase(partials);
    RemoveDirectory(PathOf(partials)).IgnoreError();
  }
}

void LogFiles::RemoveRubbishBeside(const std::vector<LogFile>& files) {
  absl::flat_hash_set<std::string> directories = {directory_};
  for (const LogFile& file : files) directories.insert(ParentOf(PathOf(file.path)));
  for (const std::string& directory : directories) {
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
    if (!names.ok()) continue;  // not made yet
    for (const std::string& name : *names) {
      if (absl::StartsWith(name, ".lockstep-") && absl::EndsWith(name, ".tmp")) {
        ::unlink(absl::StrCat(directory, "/", name).c_str());
      }
    }
  }
}

}  // namespace lockstep::coordinator
