// SPDX-License-Identifier: Apache-2.0
//
// The log as files (c2sp.org/tlog-tiles): tiles of 256 hashes at each eighth level of the tree, and
// bundles of 256 entries. Names and contents as pure functions; who writes and serves them is the
// coordinator. docs/log.md.
#ifndef LOCKSTEP_AUDIT_LOG_LOG_TILES_H_
#define LOCKSTEP_AUDIT_LOG_LOG_TILES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/merkle.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr int kTileWidth = 256;
// Levels that a tree of at most 2^63 leaves has.
inline constexpr int kTileLevels = 8;
inline constexpr char kLogCheckpointPath[] = "checkpoint";

struct LogTile {
  std::optional<int> level;  // of a tile of hashes, from 0; none: a bundle of entries
  uint64_t index = 0;        // within the level
  int width = kTileWidth;    // hashes or entries; below kTileWidth the tile is partial
  bool operator==(const LogTile&) const = default;

  // The first entry of a bundle, or the first hash of a tile within its level.
  uint64_t first() const { return index * kTileWidth; }
};

// "tile/0/x001/x234/067", "tile/entries/000.p/9". The tile is one that a log may have (checked).
std::string PathOf(const LogTile& tile);

// The tile of a path, if PathOf writes it so. Untrusted input; InvalidArgument.
absl::StatusOr<LogTile> ParseTilePath(absl::string_view path);

// What a log of `new_size` entries has that it had not at `old_size` (at most new_size, checked):
// bundles first, then tiles, levels ascending. Full ones and, at the right edge, one partial each.
std::vector<LogTile> NewTiles(uint64_t old_size, uint64_t new_size);

// The tile at (level, index) of a log of this size, as wide as it is there; nullopt for an empty
// one.
std::optional<LogTile> TileAt(std::optional<int> level, uint64_t index, uint64_t size);

// The bytes of a tile of hashes, from the tree. OutOfRange if the tree has not got that far.
absl::StatusOr<std::string> HashTileBytes(const MerkleTree& tree, const LogTile& tile);

// Entries, each after its length in two bytes, big-endian. ResourceExhausted for one that is
// longer than that can say.
absl::StatusOr<std::string> EncodeEntryBundle(std::span<const std::string> entries);

// The entries, as parts of `bytes`. Untrusted input; DataLoss unless it is `count` entries and
// nothing after them.
absl::StatusOr<std::vector<absl::string_view>> ParseEntryBundle(absl::string_view bytes, int count);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LOG_LOG_TILES_H_
