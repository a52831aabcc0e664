// SPDX-License-Identifier: Apache-2.0
//
// Writing of shards. See shard_writer.h.
#include "engine/data/shard_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/merkle.h"
#include "base/status.h"
#include "engine/data/shard_index.h"

namespace lockstep::engine {
namespace {

// A multiple of every chunk size, and enough chunks of the usual one for all threads.
constexpr size_t kFlushBytes = size_t{16} << 20;

std::string PathOf(const std::string& folder, const std::string& source, uint64_t shard,
                   ShardFile which) {
  return absl::StrCat(folder, "/", ShardFileName(source, shard, which));
}

}  // namespace

absl::StatusOr<ShardWriter> ShardWriter::Create(const std::string& folder,
                                                const std::string& source, uint64_t shard,
                                                const ShardShape& shape, ThreadPool& pool) {
  LOCKSTEP_ASSIGN_OR_RETURN(DurableFile file,
                            DurableFile::Create(PathOf(folder, source, shard, ShardFile::kTokens)));
  return ShardWriter(std::move(file), folder, source, shard, shape, pool);
}

ShardWriter::ShardWriter(DurableFile file, std::string folder, std::string source, uint64_t shard,
                         const ShardShape& shape, ThreadPool& pool)
    : tokens_file_(std::move(file)),
      folder_(std::move(folder)),
      source_(std::move(source)),
      shard_(shard),
      shape_(shape),
      token_bytes_(TokenBytes(shape.vocab_size)),
      pool_(&pool) {}

absl::Status ShardWriter::Add(const std::string& name, std::span<const int32_t> ids) {
  // Checked as they are written: an error ends the shard, so what is in the buffer then is
  // nobody's.
  size_t at = buffer_.size();
  buffer_.resize(at + (ids.size() + 1) * token_bytes_);
  const auto append = [&](uint32_t token) {
    buffer_[at] = static_cast<char>(token);
    buffer_[at + 1] = static_cast<char>(token >> 8);
    if (token_bytes_ == 4) {
      buffer_[at + 2] = static_cast<char>(token >> 16);
      buffer_[at + 3] = static_cast<char>(token >> 24);
    }
    at += token_bytes_;
  };
  for (const int32_t id : ids) {
    const auto token = static_cast<uint32_t>(id);
    if (token >= shape_.vocab_size || token == shape_.separator) {
      return absl::InvalidArgumentError(
          absl::StrCat("document ", name, ": expected tokens below ", shape_.vocab_size,
                       " other than the separator ", shape_.separator, ", found ", id));
    }
    append(token);
  }
  append(shape_.separator);
  begins_.push_back(begins_.back() + static_cast<uint32_t>(ids.size()) + 1);
  names_.push_back(name);
  names_bytes_ += name.size();
  if (buffer_.size() < kFlushBytes) return absl::OkStatus();
  return Flush(buffer_.size() / kFlushBytes * kFlushBytes);
}

// The first `bytes` of the buffer: whole chunks, but for the last call.
absl::Status ShardWriter::Flush(size_t bytes) {
  const ByteSpan piece = AsBytes(buffer_).first(bytes);
  const std::vector<Digest> hashes = MerkleLeafHashes(piece, shape_.chunk_bytes, *pool_);
  chunks_.insert(chunks_.end(), hashes.begin(), hashes.end());
  hasher_.Update(piece);
  LOCKSTEP_RETURN_IF_ERROR(tokens_file_.Append(piece));
  written_ += bytes;
  buffer_.erase(0, bytes);
  return absl::OkStatus();
}

absl::StatusOr<FileEntry> ShardWriter::WriteSmall(ShardFile which, const std::string& bytes) {
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(PathOf(folder_, source_, shard_, which), AsBytes(bytes)));
  return FileEntry{bytes.size(), Sha256(AsBytes(bytes))};
}

absl::StatusOr<ShardEntry> ShardWriter::Finish() {
  LOCKSTEP_RETURN_IF_ERROR(Flush(buffer_.size()));
  LOCKSTEP_RETURN_IF_ERROR(tokens_file_.Commit());
  ShardEntry shard;
  shard.documents = documents();
  shard.tokens = tokens();
  shard.root = MerkleRoot(chunks_);
  shard.file(ShardFile::kTokens) = {written_, hasher_.Finish()};
  std::string digests;
  for (const Digest& digest : chunks_) digests.append(digest.bytes.begin(), digest.bytes.end());
  LOCKSTEP_ASSIGN_OR_RETURN(shard.file(ShardFile::kIndex),
                            WriteSmall(ShardFile::kIndex, EncodeShardIndex(begins_)));
  LOCKSTEP_ASSIGN_OR_RETURN(shard.file(ShardFile::kNames),
                            WriteSmall(ShardFile::kNames, EncodeShardNames(names_)));
  LOCKSTEP_ASSIGN_OR_RETURN(shard.file(ShardFile::kChunks),
                            WriteSmall(ShardFile::kChunks, digests));
  return shard;
}

}  // namespace lockstep::engine
