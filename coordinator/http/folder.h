// SPDX-License-Identifier: Apache-2.0
//
// Files below a folder, by names that come from strangers: nothing outside it can be reached, also
// not by a symbolic link, whoever put it there.
#ifndef LOCKSTEP_COORDINATOR_HTTP_FOLDER_H_
#define LOCKSTEP_COORDINATOR_HTTP_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::coordinator {

// A regular file, open for reading; closed with its last holder.
class OpenFile {
 public:
  OpenFile(int fd, uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }
  uint64_t bytes() const { return bytes_; }  // when it was opened

 private:
  const int fd_;
  const uint64_t bytes_;
};

// Any thread may call.
class Folder {
 public:
  static absl::StatusOr<std::shared_ptr<const Folder>> Open(const std::string& path);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  // "a/b/c". Each part is opened in the one before, and no link is followed. NotFound if there is
  // no such regular file, or if a part is empty, "." or "..".
  absl::StatusOr<std::shared_ptr<const OpenFile>> OpenBeneath(absl::string_view path) const;

 private:
  explicit Folder(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_FOLDER_H_
