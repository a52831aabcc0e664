// SPDX-License-Identifier: Apache-2.0
//
// Reading ranges from files, and the checking source. See range_source.h.
#include "engine/data/range_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

}  // namespace

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

absl::Status LocalRangeSource::Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) {
  const std::string path = absl::StrCat(folder_, "/", NameOf(*manifest_, id));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError("open", path);
  const auto close = absl::MakeCleanup([fd] { ::close(fd); });
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", path);
    if (n == 0) {
      return absl::DataLossError(absl::StrCat(
          path, " ends at byte ", begin + done, ", expected ",
          manifest_->sources[id.source].shards[id.shard].file(id.file).bytes, " bytes"));
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status VerifiedRangeSource::Read(const ShardFileId& id, uint64_t begin,
                                       std::span<uint8_t> out) {
  const uint64_t size = manifest_->sources[id.source].shards[id.shard].file(id.file).bytes;
  if (begin > size || out.size() > size - begin) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(*manifest_, id), ": bytes ", begin,
                                                   " to ", begin + out.size(), " of ", size));
  }
  const uint64_t piece_bytes = id.file == ShardFile::kTokens ? manifest_->chunk_bytes : size;
  size_t done = 0;
  while (done < out.size()) {
    const uint64_t chunk = (begin + done) / piece_bytes;
    LOCKSTEP_ASSIGN_OR_RETURN(const Bytes piece, Piece(id, chunk), NameOf(*manifest_, id));
    const uint64_t skip = begin + done - chunk * piece_bytes;
    const size_t count = std::min<uint64_t>(out.size() - done, piece->size() - skip);
    std::memcpy(out.data() + done, piece->data() + skip, count);
    done += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<VerifiedRangeSource::Bytes> VerifiedRangeSource::Piece(const ShardFileId& id,
                                                                      uint64_t chunk) {
  const Key key = {{id.source, id.shard, static_cast<int>(id.file)}, chunk};
  {
    const absl::MutexLock lock(&mutex_);
    if (const auto at = items_.find(key); at != items_.end()) {
      recent_.splice(recent_.begin(), recent_, at->second);
      return at->second->bytes;
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Bytes bytes, Fetch(id, chunk));
  Keep(key, bytes);
  return bytes;
}

absl::StatusOr<VerifiedRangeSource::Bytes> VerifiedRangeSource::Fetch(const ShardFileId& id,
                                                                      uint64_t chunk) {
  const uint64_t size = manifest_->sources[id.source].shards[id.shard].file(id.file).bytes;
  const uint64_t begin = chunk * manifest_->chunk_bytes;
  std::string bytes(
      id.file == ShardFile::kTokens ? std::min(manifest_->chunk_bytes, size - begin) : size, '\0');
  LOCKSTEP_RETURN_IF_ERROR(
      inner_->Read(id, begin, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
  if (id.file == ShardFile::kTokens) {
    LOCKSTEP_RETURN_IF_ERROR(CheckChunk(id, chunk, bytes));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(CheckFile(id, bytes));
  }
  return std::make_shared<const std::string>(std::move(bytes));
}

absl::Status VerifiedRangeSource::CheckChunk(const ShardFileId& id, uint64_t chunk,
                                             const std::string& bytes) {
  const ShardFileId chunks = {id.source, id.shard, ShardFile::kChunks};
  LOCKSTEP_ASSIGN_OR_RETURN(const Bytes digests, Piece(chunks, 0), NameOf(*manifest_, chunks));
  Digest expected;
  std::memcpy(expected.bytes.data(), digests->data() + chunk * sizeof(Digest), sizeof(Digest));
  return CheckChunkDigest(chunk, manifest_->chunk_bytes, expected, MerkleLeafHash(AsBytes(bytes)));
}

absl::Status VerifiedRangeSource::CheckFile(const ShardFileId& id, const std::string& bytes) const {
  const ShardEntry& shard = manifest_->sources[id.source].shards[id.shard];
  // For the chunk digests it is the root that vouches; the file's own digest is a name for mirrors.
  if (id.file == ShardFile::kChunks) return ParseChunkDigests(bytes, shard).status();
  const Digest expected = shard.file(id.file).sha256;
  if (const Digest found = Sha256(AsBytes(bytes)); found != expected) {
    return absl::DataLossError(absl::StrCat("the whole file: expected digest ", expected.ToHex(),
                                            ", found ", found.ToHex(),
                                            "; fetch it again or from elsewhere"));
  }
  return absl::OkStatus();
}

void VerifiedRangeSource::Keep(const Key& key, const Bytes& bytes) {
  const absl::MutexLock lock(&mutex_);
  if (items_.contains(key)) return;  // another thread read it at the same time
  recent_.push_front({key, bytes});
  items_[key] = recent_.begin();
  bytes_ += bytes->size();
  while (bytes_ > bytes_max_ && recent_.size() > 1) {
    bytes_ -= recent_.back().bytes->size();
    items_.erase(recent_.back().key);
    recent_.pop_back();
  }
}

}  // namespace lockstep::engine
