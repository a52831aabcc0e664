// SPDX-License-Identifier: Apache-2.0
//
// Planning of fetches: the walk is made once, with a source that remembers what was read. See
// fetch_plan.h.
#include "engine/data/fetch_plan.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;  // of a token file, read by one thread

class RecordingRangeSource final : public RangeSource {
 public:
  explicit RecordingRangeSource(std::shared_ptr<RangeSource> inner) : inner_(std::move(inner)) {}
  absl::Status Read(const ShardFileId& id, uint64_t begin, std::span<uint8_t> out) override {
    files_.insert(id);
    return inner_->Read(id, begin, out);
  }
  std::string Locate(const ShardFileId& id) const override { return inner_->Locate(id); }
  // By one thread, as the walk is.
  const std::set<ShardFileId>& files() const { return files_; }

 private:
  const std::shared_ptr<RangeSource> inner_;
  std::set<ShardFileId> files_;
};

using ChunkSets = std::map<ShardFileId, std::set<uint64_t>>;

void AddSpans(const CorpusManifest& manifest, const std::vector<TokenSpan>& spans,
              ChunkSets& chunks) {
  for (const TokenSpan& span : spans) {
    const uint64_t begin = uint64_t{span.shard_begin} * manifest.token_bytes;
    const uint64_t end = begin + uint64_t{span.end - span.begin} * manifest.token_bytes;
    std::set<uint64_t>& set = chunks[{span.source, span.shard, ShardFile::kTokens}];
    for (uint64_t chunk = begin / manifest.chunk_bytes; chunk * manifest.chunk_bytes < end;
         ++chunk) {
      set.insert(chunk);
    }
  }
}

std::vector<ByteRange> Merge(const std::set<uint64_t>& chunks, uint64_t chunk_bytes,
                             uint64_t file_bytes) {
  std::vector<ByteRange> ranges;
  for (const uint64_t chunk : chunks) {
    const uint64_t begin = chunk * chunk_bytes;
    const uint64_t end = std::min(begin + chunk_bytes, file_bytes);
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end = end;
    } else {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

FetchPlan MakePlan(const CorpusManifest& manifest, const std::set<ShardFileId>& whole,
                   const ChunkSets& chunks) {
  const auto size = [&](const ShardFileId& id) { return EntryOf(manifest, id).bytes; };
  std::map<ShardFileId, std::vector<ByteRange>> files;
  for (const ShardFileId& id : whole) files[id] = {{0, size(id)}};
  for (const auto& [id, set] : chunks) {
    files[id] = Merge(set, manifest.chunk_bytes, size(id));
    const ShardFileId digests = {id.source, id.shard, ShardFile::kChunks};
    files[digests] = {{0, size(digests)}};
  }
  FetchPlan plan;
  for (auto& [id, ranges] : files) {
    for (const ByteRange& range : ranges) plan.bytes += range.end - range.begin;
    plan.files.push_back({id, std::move(ranges)});
  }
  return plan;
}

}  // namespace

absl::StatusOr<FetchPlan> PlanFetch(const CorpusReader& corpus, uint64_t seed, uint64_t seq_len,
                                    const StreamCursor& cursor, uint64_t windows,
                                    absl::FunctionRef<bool()> interrupted) {
  const auto recorder = std::make_shared<RecordingRangeSource>(corpus.source());
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const CorpusReader> recorded,
                            CorpusReader::Open(corpus.shared_manifest(), recorder));
  LOCKSTEP_ASSIGN_OR_RETURN(Stream stream, Stream::Open(recorded, seed, seq_len));
  LOCKSTEP_RETURN_IF_ERROR(stream.Seek(cursor));
  ChunkSets chunks;
  std::vector<TokenSpan> spans;
  for (uint64_t i = 0; i < windows; ++i) {
    if (interrupted()) return absl::CancelledError("interrupted");
    LOCKSTEP_RETURN_IF_ERROR(stream.Next(&spans));
    AddSpans(corpus.manifest(), spans, chunks);
  }
  return MakePlan(corpus.manifest(), recorder->files(), chunks);
}

absl::Status FetchPlanned(const CorpusReader& corpus, const FetchPlan& plan, ThreadPool& pool,
                          const FetchHooks& hooks) {
  struct Piece {
    ShardFileId id;
    ByteRange range;
    absl::Status status;
  };
  std::vector<Piece> pieces;
  for (const FileRanges& file : plan.files) {
    // Only tokens may be read in parts.
    const uint64_t most = file.id.file == ShardFile::kTokens
                              ? std::max(kPieceBytes, corpus.manifest().chunk_bytes)
                              : UINT64_MAX;
    for (const ByteRange& range : file.ranges) {
      for (uint64_t begin = range.begin; begin < range.end;) {
        const uint64_t end = begin + std::min(most, range.end - begin);
        pieces.push_back({file.id, {begin, end}, absl::OkStatus()});
        begin = end;
      }
    }
  }
  std::atomic<bool> stop = false;
  pool.ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Piece& piece = pieces[i];
      if (stop || hooks.interrupted()) {
        stop = true;
        piece.status = absl::CancelledError("interrupted");
        continue;
      }
      std::vector<uint8_t> bytes(piece.range.end - piece.range.begin);
      piece.status = corpus.source()->Read(piece.id, piece.range.begin, bytes);
      if (piece.status.ok()) hooks.progress(static_cast<int64_t>(bytes.size()));
    }
  });
  for (const Piece& piece : pieces) LOCKSTEP_RETURN_IF_ERROR(piece.status);
  return absl::OkStatus();
}

}  // namespace lockstep::engine
