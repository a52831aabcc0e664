// SPDX-License-Identifier: Apache-2.0
//
// The source that checks others. See range_source.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/merkle.h"
#include "base/status.h"
#include "engine/data/range_source.h"

namespace lockstep::engine {
namespace {

// Asked for at a time: enough to make a round trip worth it, little enough to be sent again.
constexpr uint64_t kFetchBytes = uint64_t{1} << 20;

// What to tell when no source had the bytes. Worth another try (Unavailable) if one source is.
absl::Status NoneHad(const std::vector<absl::Status>& errors) {
  if (errors.size() == 1) return errors[0];
  absl::StatusCode code = errors[0].code();
  std::string message = "no source has it good";
  for (const absl::Status& error : errors) {
    absl::StrAppend(&message, "; ", error.message());
    // That a cache lacks a piece says nothing once a mirror was asked.
    if (absl::IsUnavailable(error) || code == absl::StatusCode::kNotFound) code = error.code();
  }
  return absl::Status(code, message);
}

}  // namespace

VerifiedRangeSource::VerifiedRangeSource(std::vector<std::shared_ptr<RangeSource>> sources,
                                         std::shared_ptr<const CorpusManifest> manifest,
                                         std::shared_ptr<FolderRangeSource> cache,
                                         uint64_t bytes_max)
    : sources_(std::move(sources)),
      manifest_(std::move(manifest)),
      cache_(std::move(cache)),
      bytes_max_(bytes_max) {}

uint64_t VerifiedRangeSource::SizeOf(const ShardFileId& id) const {
  return EntryOf(*manifest_, id).bytes;
}

uint64_t VerifiedRangeSource::PieceBytes(const ShardFileId& id) const {
  return id.file == ShardFile::kTokens ? manifest_->chunk_bytes : SizeOf(id);
}

absl::Status VerifiedRangeSource::Read(const ShardFileId& id, uint64_t begin,
                                       std::span<uint8_t> out) {
  const uint64_t size = SizeOf(id);
  if (begin > size || out.size() > size - begin) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(*manifest_, id), ": bytes ", begin,
                                                   " to ", begin + out.size(), " of ", size));
  }
  if (out.empty()) return absl::OkStatus();
  const uint64_t piece_bytes = PieceBytes(id);
  const uint64_t end = (begin + out.size() - 1) / piece_bytes + 1;
  size_t done = 0;
  const auto copy = [&](uint64_t chunk, const std::string& piece) {
    const uint64_t skip = begin + done - chunk * piece_bytes;
    const size_t count = std::min<uint64_t>(out.size() - done, piece.size() - skip);
    std::memcpy(out.data() + done, piece.data() + skip, count);
    done += count;
  };
  for (uint64_t chunk = begin / piece_bytes; chunk < end;) {
    if (const Bytes piece = Recall(id, chunk)) {
      copy(chunk++, *piece);
      continue;
    }
    const uint64_t last = std::min(end, chunk + std::max<uint64_t>(1, kFetchBytes / piece_bytes));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Bytes> pieces, Fetch(id, chunk, last));
    for (const Bytes& piece : pieces) {
      Keep(id, chunk, piece);
      copy(chunk++, *piece);
    }
  }
  return absl::OkStatus();
}

// Pieces first ... last - 1, or, if nobody has all of them at once, the first of them.
absl::StatusOr<std::vector<VerifiedRangeSource::Bytes>> VerifiedRangeSource::Fetch(
    const ShardFileId& id, uint64_t first, uint64_t last) {
  Bytes digests;
  if (id.file == ShardFile::kTokens) {
    LOCKSTEP_ASSIGN_OR_RETURN(digests, ChunkDigests(id));
  }
  std::vector<absl::Status> errors;
  for (const std::shared_ptr<RangeSource>& source : sources_) {
    std::vector<Bytes> good;
    const absl::Status status = FetchFrom(*source, id, first, last, digests, &good);
    if (good.empty()) {
      errors.push_back(status);
      continue;
    }
    if (cache_ != nullptr && source != cache_) {
      uint64_t at = first * PieceBytes(id);
      for (const Bytes& piece : good) {
        LOCKSTEP_RETURN_IF_ERROR(cache_->Write(id, at, AsBytes(*piece)));
        at += piece->size();
      }
    }
    return good;
  }
  return NoneHad(errors);
}

// From one source: those pieces that are good, up to the first that is not.
absl::Status VerifiedRangeSource::FetchFrom(RangeSource& source, const ShardFileId& id,
                                            uint64_t first, uint64_t last, const Bytes& digests,
                                            std::vector<Bytes>* good) const {
  const uint64_t piece_bytes = PieceBytes(id);
  const uint64_t begin = first * piece_bytes;
  std::string bytes(std::min(last * piece_bytes, SizeOf(id)) - begin, '\0');
  LOCKSTEP_RETURN_IF_ERROR(
      source.Read(id, begin, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
  if (id.file != ShardFile::kTokens) {
    LOCKSTEP_RETURN_IF_ERROR(CheckFile(id, bytes), source.Locate(id));
    good->push_back(std::make_shared<const std::string>(std::move(bytes)));
    return absl::OkStatus();
  }
  for (uint64_t chunk = first; chunk < last; ++chunk) {
    std::string piece = last - first == 1
                            ? std::move(bytes)
                            : bytes.substr((chunk - first) * piece_bytes, piece_bytes);
    Digest expected;
    std::memcpy(expected.bytes.data(), digests->data() + chunk * sizeof(Digest), sizeof(Digest));
    LOCKSTEP_RETURN_IF_ERROR(
        CheckChunkDigest(chunk, piece_bytes, expected, MerkleLeafHash(AsBytes(piece))),
        source.Locate(id));
    good->push_back(std::make_shared<const std::string>(std::move(piece)));
  }
  return absl::OkStatus();
}

absl::StatusOr<VerifiedRangeSource::Bytes> VerifiedRangeSource::ChunkDigests(
    const ShardFileId& tokens) {
  const ShardFileId id = {tokens.source, tokens.shard, ShardFile::kChunks};
  if (Bytes digests = Recall(id, 0)) return digests;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Bytes> pieces, Fetch(id, 0, 1));
  Keep(id, 0, pieces[0]);
  return pieces[0];
}

absl::Status VerifiedRangeSource::CheckFile(const ShardFileId& id, absl::string_view bytes) const {
  // For the chunk digests it is the root that vouches; the file's own digest is a name for mirrors.
  if (id.file == ShardFile::kChunks) {
    return ParseChunkDigests(bytes, manifest_->sources[id.source].shards[id.shard]).status();
  }
  const Digest expected = EntryOf(*manifest_, id).sha256;
  if (const Digest found = Sha256(AsBytes(bytes)); found != expected) {
    return absl::DataLossError(absl::StrCat("the whole file: expected digest ", expected.ToHex(),
                                            ", found ", found.ToHex(),
                                            "; fetch it again or from elsewhere"));
  }
  return absl::OkStatus();
}

VerifiedRangeSource::Bytes VerifiedRangeSource::Recall(const ShardFileId& id, uint64_t chunk) {
  const Key key = {{id.source, id.shard, static_cast<int>(id.file)}, chunk};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = items_.find(key);
  if (at == items_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, at->second);
  return at->second->bytes;
}

void VerifiedRangeSource::Keep(const ShardFileId& id, uint64_t chunk, const Bytes& bytes) {
  const Key key = {{id.source, id.shard, static_cast<int>(id.file)}, chunk};
  const std::lock_guard<std::mutex> lock(mutex_);
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
