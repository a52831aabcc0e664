// SPDX-License-Identifier: Apache-2.0
//
// Entry bundles of a directory, one after another.
#include "audit/ledger/log_source.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/log_tiles.h"
#include "audit/log/signed_note.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr size_t kEntryTileBytesMax = kTileWidth * (kLogEntryBytesMax + 2);

class TileDirectory final : public LogSource {
 public:
  TileDirectory(std::string directory, std::string checkpoint, uint64_t size)
      : directory_(std::move(directory)), checkpoint_(std::move(checkpoint)), size_(size) {}

  const std::string& checkpoint() const override { return checkpoint_; }
  const std::string& named_key() const override { return named_key_; }

  absl::StatusOr<std::optional<std::string>> Next() override {
    if (next_ == size_) return std::nullopt;
    const uint64_t place = next_ % kTileWidth;
    if (place == 0) LOCKSTEP_RETURN_IF_ERROR(ReadTile(next_ / kTileWidth));
    ++next_;
    return std::move(entries_[place]);
  }

 private:
  absl::Status ReadTile(uint64_t index) {
    LogTile tile = *TileAt(std::nullopt, index, size_);
    const auto wanted = static_cast<size_t>(tile.width);
    absl::StatusOr<std::string> bytes = Read(tile);
    if (absl::IsNotFound(bytes.status()) && tile.width < kTileWidth) {
      // A log may drop a partial tile once the full one is there, which begins with it.
      tile.width = kTileWidth;
      bytes = Read(tile);
    }
    LOCKSTEP_RETURN_IF_ERROR(bytes.status());
    LOCKSTEP_ASSIGN_OR_RETURN(const auto entries, ParseEntryBundle(*bytes, tile.width),
                              PathOf(tile));
    entries_.clear();
    for (size_t i = 0; i < wanted; ++i) entries_.emplace_back(entries[i]);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Read(const LogTile& tile) const {
    return ReadFile(absl::StrCat(directory_, "/", PathOf(tile)), kEntryTileBytesMax);
  }

  const std::string directory_;
  const std::string checkpoint_;
  const std::string named_key_;
  const uint64_t size_;
  uint64_t next_ = 0;
  std::vector<std::string> entries_;  // of the present tile
};

}  // namespace

absl::StatusOr<std::unique_ptr<LogSource>> OpenTileDirectory(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kLogCheckpointPath);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string note, ReadFile(path, kNoteBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const SignedNote parsed, ParseSignedNote(note), path);
  LOCKSTEP_ASSIGN_OR_RETURN(const LogCheckpoint checkpoint, ParseLogCheckpoint(parsed.text), path);
  return std::make_unique<TileDirectory>(directory, std::move(note), checkpoint.size);
}

}  // namespace lockstep::audit
