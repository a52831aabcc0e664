// SPDX-License-Identifier: Apache-2.0
//
// Folders as sources. See range_source.h; the checking source is in verified_range_source.cc.
#include "engine/data/range_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

constexpr size_t kOpenFilesMax = 64;

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

}  // namespace

const FileEntry& EntryOf(const CorpusManifest& manifest, const ShardFileId& id) {
  return manifest.sources[id.source].shards[id.shard].file(id.file);
}

std::string NameOf(const CorpusManifest& manifest, const ShardFileId& id) {
  return ShardFileName(manifest.sources[id.source].name, id.shard, id.file);
}

absl::StatusOr<std::vector<Digest>> ParseChunkDigests(absl::string_view bytes,
                                                      const ShardEntry& shard) {
  const uint64_t size = shard.file(ShardFile::kChunks).bytes;
  if (bytes.size() != size) {
    return absl::DataLossError(
        absl::StrCat("expected ", size, " bytes of chunk digests, found ", bytes.size()));
  }
  std::vector<Digest> digests(bytes.size() / sizeof(Digest));
  for (size_t i = 0; i < digests.size(); ++i) {
    std::memcpy(digests[i].bytes.data(), bytes.data() + i * sizeof(Digest), sizeof(Digest));
  }
  if (const Digest root = MerkleRoot(digests); root != shard.root) {
    return absl::DataLossError(absl::StrCat("the chunk digests have the root ", root.ToHex(),
                                            ", expected ", shard.root.ToHex()));
  }
  return digests;
}

absl::Status CheckChunkDigest(uint64_t chunk, uint64_t chunk_bytes, const Digest& expected,
                              const Digest& found) {
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("chunk ", chunk, " at byte offset ", chunk * chunk_bytes,
                                          ": expected digest ", expected.ToHex(), ", found ",
                                          found.ToHex(), "; fetch it again or from elsewhere"));
}

class FolderRangeSource::File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

absl::StatusOr<std::shared_ptr<const FolderRangeSource::File>> FolderRangeSource::Open(
    const ShardFileId& id) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = files_.find(id); at != files_.end()) return at->second;
  }
  const std::string path = Locate(id);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError("open", path);
  const auto file = std::make_shared<const File>(fd);
  // Only tokens are read again and again.
  if (id.file != ShardFile::kTokens) return file;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (files_.size() >= kOpenFilesMax) files_.clear();
  files_[id] = file;
  return file;
}

std::string FolderRangeSource::Locate(const ShardFileId& id) const {
  return absl::StrCat(folder_, "/", NameOf(*manifest_, id));
}

absl::Status FolderRangeSource::Read(const ShardFileId& id, uint64_t begin,
                                     std::span<uint8_t> out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const File> file, Open(id));
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(file->fd(), out.data() + done, out.size() - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", Locate(id));
    if (n == 0) {
      return absl::DataLossError(absl::StrCat(Locate(id), " ends at byte ", begin + done,
                                              ", expected ", EntryOf(*manifest_, id).bytes,
                                              " bytes"));
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status FolderRangeSource::Write(const ShardFileId& id, uint64_t begin, ByteSpan bytes) {
  const std::string path = Locate(id);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("create the folder of ", path));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return SystemError("open", path);
  const auto close = absl::MakeCleanup([fd] { ::close(fd); });
  struct stat info;
  if (::fstat(fd, &info) != 0) return SystemError("stat", path);
  const uint64_t size = EntryOf(*manifest_, id).bytes;
  if (static_cast<uint64_t>(info.st_size) != size &&
      ::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    return SystemError("set the size of", path);
  }
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("write", path);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::engine
