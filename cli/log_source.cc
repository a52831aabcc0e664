// SPDX-License-Identifier: Apache-2.0
//
// Tiles over HTTP, and the root over what goes by.
#include "cli/log_source.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "audit/ledger/bundle.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/log_tiles.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::cli {
namespace {

constexpr size_t kKeyFileBytesMax = 4096;
constexpr size_t kEntryTileBytesMax = audit::kTileWidth * (audit::kLogEntryBytesMax + 2);

absl::StatusOr<audit::LogCheckpoint> HeadOf(const std::string& note) {
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::SignedNote parsed, audit::ParseSignedNote(note));
  return audit::ParseLogCheckpoint(parsed.text);
}

class RemoteLog final : public audit::LogSource {
 public:
  RemoteLog(net::HttpClient& client, std::string address, std::string checkpoint, uint64_t size)
      : client_(client),
        address_(std::move(address)),
        checkpoint_(std::move(checkpoint)),
        size_(size) {}

  const std::string& checkpoint() const override { return checkpoint_; }
  const std::string& named_key() const override { return named_key_; }

  absl::StatusOr<std::optional<std::string>> Next() override {
    if (next_ == size_) return std::nullopt;
    const uint64_t place = next_ % audit::kTileWidth;
    if (place == 0) LOCKSTEP_RETURN_IF_ERROR(FetchTile(next_ / audit::kTileWidth));
    ++next_;
    return std::move(entries_[place]);
  }

 private:
  absl::Status FetchTile(uint64_t index) {
    audit::LogTile tile = *audit::TileAt(std::nullopt, index, size_);
    const auto wanted = static_cast<size_t>(tile.width);
    absl::StatusOr<std::string> bytes = Fetch(tile);
    if (absl::IsNotFound(bytes.status()) && tile.width < audit::kTileWidth) {
      // The log has grown since: the partial tile may be gone for the full one, which begins with
      // it.
      tile.width = audit::kTileWidth;
      bytes = Fetch(tile);
    }
    LOCKSTEP_RETURN_IF_ERROR(bytes.status());
    LOCKSTEP_ASSIGN_OR_RETURN(const auto entries, audit::ParseEntryBundle(*bytes, tile.width),
                              address_, "/", audit::PathOf(tile));
    entries_.clear();
    for (size_t i = 0; i < wanted; ++i) entries_.emplace_back(entries[i]);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Fetch(const audit::LogTile& tile) {
    return client_.ReadFile(absl::StrCat(address_, "/", audit::PathOf(tile)), kEntryTileBytesMax);
  }

  net::HttpClient& client_;
  const std::string address_;
  const std::string checkpoint_;
  const std::string named_key_;
  const uint64_t size_;
  uint64_t next_ = 0;
  std::vector<std::string> entries_;  // of the present tile
};

class CheckedSource final : public audit::LogSource {
 public:
  CheckedSource(std::unique_ptr<audit::LogSource> source, audit::LogCheckpoint head,
                std::function<void()> passed)
      : source_(std::move(source)), head_(std::move(head)), passed_(std::move(passed)) {}

  const std::string& checkpoint() const override { return source_->checkpoint(); }
  const std::string& named_key() const override { return source_->named_key(); }

  absl::StatusOr<std::optional<std::string>> Next() override {
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> entry, source_->Next());
    if (entry) {
      tree_.Append(MerkleLeafHash(AsBytes(*entry)));
      if (passed_) passed_();
    } else if (tree_.Root() != head_.root) {
      return absl::DataLossError(absl::StrCat(
          "the root over all ", head_.size, " entries: the log signed for ", head_.root.ToHex(),
          "; found ", tree_.Root().ToHex(), ": these are not the entries that it signed for"));
    }
    return entry;
  }

 private:
  const std::unique_ptr<audit::LogSource> source_;
  const audit::LogCheckpoint head_;
  const std::function<void()> passed_;
  MerkleFrontier tree_;
};

}  // namespace

absl::StatusOr<audit::NoteKey> ParseLogKey(const std::string& text) {
  const absl::StatusOr<audit::NoteKey> key = audit::NoteKey::FromText(text);
  if (key.ok()) return key;
  const absl::StatusOr<std::string> file = ReadFile(text, kKeyFileBytesMax);
  if (!file.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("log key: expected NAME+ID+BASE64 or a file that holds it; found ", text));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      audit::NoteKey from_file,
      audit::NoteKey::FromText(std::string(absl::StripAsciiWhitespace(*file))), "log key in ",
      text);
  return from_file;
}

std::optional<std::string> TileFolder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::nullopt;
  const std::string below = path + "/public";
  const bool above = !std::filesystem::exists(path + "/" + audit::kLogCheckpointPath, error) &&
                     std::filesystem::exists(below + "/" + audit::kLogCheckpointPath, error);
  return above ? below : path;
}

absl::StatusOr<std::unique_ptr<audit::LogSource>> OpenLog(const std::string& path) {
  const std::optional<std::string> folder = TileFolder(path);
  return folder ? audit::OpenTileDirectory(*folder) : audit::OpenBundle(path);
}

bool IsAddress(const std::string& text) {
  return absl::StartsWith(text, "http://") || absl::StartsWith(text, "https://");
}

absl::StatusOr<std::unique_ptr<audit::LogSource>> OpenRemoteLog(net::HttpClient& client,
                                                                const std::string& address) {
  const std::string url = absl::StrCat(address, "/", audit::kLogCheckpointPath);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string note, client.ReadFile(url, audit::kNoteBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogCheckpoint head, HeadOf(note), url);
  return std::make_unique<RemoteLog>(client, address, std::move(note), head.size);
}

absl::StatusOr<std::unique_ptr<audit::LogSource>> CheckedLog(
    std::unique_ptr<audit::LogSource> source, const audit::NoteKey& key,
    std::function<void()> passed) {
  const absl::StatusOr<audit::LogCheckpoint> head =
      audit::OpenLogCheckpoint(source->checkpoint(), key);
  // Not signed by this key is not this log.
  if (!head.ok()) return absl::DataLossError(head.status().message());
  return std::make_unique<CheckedSource>(std::move(source), *head, std::move(passed));
}

}  // namespace lockstep::cli
