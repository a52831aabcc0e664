// SPDX-License-Identifier: Apache-2.0
//
// Tile by tile.
#include "audit/ledger/hash_tiles.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "audit/log/log_tiles.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr size_t kTileBytesMax = size_t{kTileWidth} * sizeof(Digest::bytes);

class Hashing final : public LogSource {
 public:
  Hashing(std::unique_ptr<LogSource> source, MerkleTree* tree)
      : source_(std::move(source)), tree_(tree) {}

  const std::string& checkpoint() const override { return source_->checkpoint(); }
  const std::string& named_key() const override { return source_->named_key(); }
  absl::StatusOr<std::optional<std::string>> Next() override {
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> entry, source_->Next());
    if (entry) tree_->Append(MerkleLeafHash(AsBytes(*entry)));
    return entry;
  }

 private:
  const std::unique_ptr<LogSource> source_;
  MerkleTree* const tree_;
};

// What is wrong with the file of a tile; nullopt if nothing is.
std::optional<std::string> CheckTile(const std::string& directory, const LogTile& tile,
                                     const MerkleTree& tree) {
  std::string path = PathOf(tile);
  absl::StatusOr<std::string> bytes = ReadFile(absl::StrCat(directory, "/", path), kTileBytesMax);
  if (absl::IsNotFound(bytes.status()) && tile.width < kTileWidth) {
    // A log may drop a partial tile once the full one is there, which begins with it.
    path = PathOf({.level = tile.level, .index = tile.index, .width = kTileWidth});
    bytes = ReadFile(absl::StrCat(directory, "/", path), kTileBytesMax);
    if (bytes.ok() && bytes->size() == kTileBytesMax) {
      bytes->resize(static_cast<size_t>(tile.width) * sizeof(Digest::bytes));
    }
  }
  if (!bytes.ok()) return std::string(bytes.status().message());
  if (*bytes == HashTileBytes(tree, tile).value()) return std::nullopt;
  return absl::StrCat(path, ": its hashes are not those of the entries");
}

}  // namespace

std::unique_ptr<LogSource> HashingSource(std::unique_ptr<LogSource> source, MerkleTree* tree) {
  return std::make_unique<Hashing>(std::move(source), tree);
}

std::vector<std::string> CheckHashTiles(const std::string& directory, const MerkleTree& tree) {
  std::vector<std::string> faults;
  if (absl::IsNotFound(ListDirectory(directory + "/tile/0").status())) return faults;
  for (const LogTile& tile : NewTiles(0, tree.size())) {
    if (!tile.level) continue;
    if (std::optional<std::string> fault = CheckTile(directory, tile, tree)) {
      faults.push_back(*std::move(fault));
    }
  }
  return faults;
}

}  // namespace lockstep::audit
