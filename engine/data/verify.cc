// SPDX-License-Identifier: Apache-2.0
//
// Verification of corpora. See verify.h.
#include "engine/data/verify.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/status.h"
#include "engine/data/range_source.h"
#include "engine/data/shard_index.h"
#include "engine/data/shard_reader.h"

namespace lockstep::engine {
namespace {

constexpr size_t kReadBytes = size_t{16} << 20;  // a multiple of every chunk size

absl::Status CheckSha256(const Digest& expected, const Digest& found) {
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the whole file: expected digest ", expected.ToHex(),
                                          ", found ", found.ToHex()));
}

// A file that is read whole: index, names, chunk digests.
absl::StatusOr<std::string> ReadWhole(const std::string& path, const FileEntry& entry) {
  absl::StatusOr<std::string> bytes = ReadFile(path, entry.bytes);
  if (absl::IsResourceExhausted(bytes.status()) || (bytes.ok() && bytes->size() != entry.bytes)) {
    return absl::DataLossError(absl::StrCat(path, ": expected ", entry.bytes, " bytes, found ",
                                            bytes.ok() ? absl::StrCat(bytes->size()) : "more"));
  }
  return bytes;
}

// The tokens of a shard as they go by: their range, and a separator at the end of each document and
// nowhere else.
class TokenCheck {
 public:
  TokenCheck(const CorpusManifest& manifest, const ShardIndex& index)
      : manifest_(manifest), index_(index) {}

  absl::Status Take(ByteSpan bytes) {
    return manifest_.token_bytes == 2 ? Take<2>(bytes) : Take<4>(bytes);
  }

 private:
  template <size_t kWidth>
  absl::Status Take(ByteSpan bytes) {
    for (size_t at = 0; at < bytes.size(); at += kWidth, ++token_) {
      uint32_t id = bytes[at] | static_cast<uint32_t>(bytes[at + 1]) << 8;
      if constexpr (kWidth == 4) {
        id |= static_cast<uint32_t>(bytes[at + 2]) << 16 | static_cast<uint32_t>(bytes[at + 3])
                                                               << 24;
      }
      const bool last = token_ + 1 == index_.begins[document_ + 1];
      if (id >= manifest_.vocab_size || (id == manifest_.separator) != last) return Fail(id, last);
      document_ += last;
    }
    return absl::OkStatus();
  }

  absl::Status Fail(uint32_t id, bool last) const {
    const std::string expected =
        last ? absl::StrCat("the separator ", manifest_.separator)
             : absl::StrCat("a token below ", manifest_.vocab_size, " that is not the separator");
    return absl::DataLossError(absl::StrCat("byte offset ", token_ * manifest_.token_bytes,
                                            ", document ", document_, ": expected ", expected,
                                            ", found ", id));
  }

  const CorpusManifest& manifest_;
  const ShardIndex& index_;
  uint64_t token_ = 0;
  uint64_t document_ = 0;
};

class Verifier {
 public:
  Verifier(std::string folder, const CorpusManifest& manifest, ThreadPool& pool,
           const VerifyHooks& hooks)
      : folder_(std::move(folder)), manifest_(manifest), pool_(pool), hooks_(hooks) {}

  absl::StatusOr<VerifyReport> Run() {
    for (const SourceEntry& source : manifest_.sources) {
      for (size_t i = 0; i < source.shards.size(); ++i) {
        LOCKSTEP_RETURN_IF_ERROR(CheckShard(source, i));
      }
    }
    report_.manifest = ManifestDigest(manifest_);
    return report_;
  }

 private:
  absl::Status CheckShard(const SourceEntry& source, size_t number) {
    const ShardEntry& shard = source.shards[number];
    const auto path = [&](ShardFile which) {
      return absl::StrCat(folder_, "/", ShardFileName(source.name, number, which));
    };
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string chunks,
                              ReadWhole(path(ShardFile::kChunks), shard.file(ShardFile::kChunks)));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> digests, ParseChunkDigests(chunks, shard),
                              path(ShardFile::kChunks));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string index_bytes,
                              ReadWhole(path(ShardFile::kIndex), shard.file(ShardFile::kIndex)));
    LOCKSTEP_RETURN_IF_ERROR(CheckFile(shard, ShardFile::kIndex, index_bytes),
                             path(ShardFile::kIndex));
    LOCKSTEP_ASSIGN_OR_RETURN(const ShardIndex index,
                              ParseShardIndex(AsBytes(index_bytes), shard.documents, shard.tokens),
                              path(ShardFile::kIndex));
    LOCKSTEP_RETURN_IF_ERROR(CheckTokens(shard, digests, index, path(ShardFile::kTokens)));
    LOCKSTEP_RETURN_IF_ERROR(CheckFile(shard, ShardFile::kChunks, chunks),
                             path(ShardFile::kChunks));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string names,
                              ReadWhole(path(ShardFile::kNames), shard.file(ShardFile::kNames)));
    LOCKSTEP_RETURN_IF_ERROR(CheckFile(shard, ShardFile::kNames, names), path(ShardFile::kNames));
    LOCKSTEP_RETURN_IF_ERROR(ParseShardNames(AsBytes(names), shard.documents).status(),
                             path(ShardFile::kNames));
    report_.documents += shard.documents;
    report_.tokens += shard.tokens;
    return absl::OkStatus();
  }

  absl::Status CheckFile(const ShardEntry& shard, ShardFile which, const std::string& bytes) {
    Count(bytes.size());
    ++report_.files;
    return CheckSha256(shard.file(which).sha256, Sha256(AsBytes(bytes)));
  }

  void Count(size_t bytes) {
    report_.bytes += bytes;
    hooks_.progress(static_cast<int64_t>(bytes));
  }

  absl::Status CheckTokens(const ShardEntry& shard, const std::vector<Digest>& digests,
                           const ShardIndex& index, const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
    const auto close = absl::MakeCleanup([fd] { ::close(fd); });
    struct stat info;
    if (::fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("stat ", path));
    const uint64_t expected = shard.file(ShardFile::kTokens).bytes;
    const auto found = static_cast<uint64_t>(info.st_size);
    // What is there is checked first, so that damage before the end is named before the end's lack.
    LOCKSTEP_RETURN_IF_ERROR(CheckTokenBytes(shard, digests, index, fd, std::min(found, expected)),
                             path);
    if (found != expected) {
      return absl::DataLossError(absl::StrCat(
          path, ": chunk ", std::min(found, expected) / manifest_.chunk_bytes, " at byte offset ",
          std::min(found, expected) / manifest_.chunk_bytes * manifest_.chunk_bytes,
          ": the file has ", found, " bytes, expected ", expected));
    }
    return absl::OkStatus();
  }

  // The first `size` bytes; of a file cut short, its whole chunks.
  absl::Status CheckTokenBytes(const ShardEntry& shard, const std::vector<Digest>& digests,
                               const ShardIndex& index, int fd, uint64_t size) {
    const bool whole = size == shard.file(ShardFile::kTokens).bytes;
    if (!whole) size = size / manifest_.chunk_bytes * manifest_.chunk_bytes;
    TokenCheck tokens(manifest_, index);
    Sha256Hasher hasher;
    std::string buffer;
    for (uint64_t at = 0; at < size; at += buffer.size()) {
      if (hooks_.interrupted()) return absl::CancelledError("interrupted");
      buffer.resize(std::min<uint64_t>(kReadBytes, size - at));
      LOCKSTEP_RETURN_IF_ERROR(ReadAt(fd, at, &buffer));
      const std::vector<Digest> found =
          MerkleLeafHashes(AsBytes(buffer), manifest_.chunk_bytes, pool_);
      for (size_t i = 0; i < found.size(); ++i) {
        const uint64_t chunk = at / manifest_.chunk_bytes + i;
        LOCKSTEP_RETURN_IF_ERROR(
            CheckChunkDigest(chunk, manifest_.chunk_bytes, digests[chunk], found[i]));
      }
      hasher.Update(AsBytes(buffer));
      LOCKSTEP_RETURN_IF_ERROR(tokens.Take(AsBytes(buffer)));
      report_.chunks += found.size();
      Count(buffer.size());
    }
    if (!whole) return absl::OkStatus();
    ++report_.files;
    return CheckSha256(shard.file(ShardFile::kTokens).sha256, hasher.Finish());
  }

  static absl::Status ReadAt(int fd, uint64_t at, std::string* buffer) {
    size_t done = 0;
    while (done < buffer->size()) {
      const ssize_t n =
          ::pread(fd, buffer->data() + done, buffer->size() - done, static_cast<off_t>(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, "read");
      if (n == 0) return absl::DataLossError("became shorter while it was read");
      done += static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

  const std::string folder_;
  const CorpusManifest& manifest_;
  ThreadPool& pool_;
  const VerifyHooks& hooks_;
  VerifyReport report_;
};

}  // namespace

absl::StatusOr<VerifyReport> VerifyCorpus(const std::string& folder,
                                          const std::optional<Digest>& manifest, ThreadPool& pool,
                                          const VerifyHooks& hooks) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CorpusManifest found, ReadCorpusManifest(folder, manifest));
  return Verifier(folder, found, pool, hooks).Run();
}

uint64_t CorpusBytes(const CorpusManifest& manifest) {
  uint64_t bytes = 0;
  for (const SourceEntry& source : manifest.sources) {
    for (const ShardEntry& shard : source.shards) {
      for (const FileEntry& file : shard.files) bytes += file.bytes;
    }
  }
  return bytes;
}

}  // namespace lockstep::engine
