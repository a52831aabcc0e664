// SPDX-License-Identifier: Apache-2.0
//
// A file that comes in pieces, perhaps over several lives of a process: it grows under a name of
// its own, is hashed as it grows, and gets its true name once it is whole. What base/file.h is for
// files that are written in one go.
//
// After a kill, what was appended is there. After a power failure a tail that was never synced may
// be missing or hold anything: whoever renames the file has compared its digest, so that costs a
// second transfer and no more. Errors carry the path and the system's reason, as in base/file.h.
#ifndef LOCKSTEP_BASE_PARTIAL_FILE_H_
#define LOCKSTEP_BASE_PARTIAL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep {

// Move-only; not for several threads at once.
class PartialFile {
 public:
  // Opens `path`, a regular file of ours, or makes it; reads and hashes what it holds already.
  // One at a time holds it, over all processes (flock): Unavailable if another does. More than
  // bytes_max there already: it is begun again.
  static absl::StatusOr<PartialFile> Open(const std::string& path, uint64_t bytes_max);

  // Closes the file and leaves it for another time.
  ~PartialFile();
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&& other) noexcept;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }

  // Writes at the end. After an error the bytes that did reach the file are counted, and a later
  // call may go on from there: a full disk may have got room.
  absl::Status Append(ByteSpan bytes);
  // Brings the bytes to the disk. After an error the file may no longer be what bytes() says, and
  // is to be removed.
  absl::Status Sync();
  // Begins again with nothing.
  absl::Status Restart();

  // Of all bytes; the last thing before Commit, Restart or Remove.
  Digest FinishDigest() { return hasher_.Finish(); }
  // Sync, rename to `path` on the same file system (what is there is replaced), fsync of its
  // directory; nothing else after it. An error leaves nothing under the first name if the disk
  // failed.
  absl::Status Commit(const std::string& path);
  // Removes the file; nothing else after it.
  void Remove();

 private:
  PartialFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status ReadBack();
  void Close();

  std::string path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  Sha256Hasher hasher_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_PARTIAL_FILE_H_
