// SPDX-License-Identifier: Apache-2.0
//
// Paths, and what is in the files.
#include "audit/log/log_tiles.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr int kLevelBits = 8;
// 2^56 tiles of 2^8 hashes: all that 64 bits count.
constexpr uint64_t kIndexMax = (uint64_t{1} << 56) - 1;

bool IsTile(const LogTile& tile) {
  return (!tile.level || (*tile.level >= 0 && *tile.level < kTileLevels)) && tile.width >= 1 &&
         tile.width <= kTileWidth && tile.index <= kIndexMax;
}

// Hashes at a level of tiles, or entries, in a log of this size.
uint64_t CountAt(std::optional<int> level, uint64_t size) {
  const int shift = kLevelBits * level.value_or(0);
  return shift >= 64 ? 0 : size >> shift;
}

// Decimal digits as they are written, and nothing else.
bool ParseDecimal(absl::string_view text, uint64_t* value) {
  return absl::SimpleAtoi(text, value) && absl::StrCat(*value) == text;
}

// The last part may be followed by ".p/WIDTH", which the caller took off.
bool ParseIndex(const std::vector<absl::string_view>& parts, size_t from, uint64_t* index) {
  *index = 0;
  for (size_t i = from; i < parts.size(); ++i) {
    absl::string_view digits = parts[i];
    const bool last = i + 1 == parts.size();
    if (!last && !absl::ConsumePrefix(&digits, "x")) return false;
    uint64_t value = 0;
    if (digits.size() != 3 || digits.find_first_not_of("0123456789") != digits.npos ||
        !absl::SimpleAtoi(digits, &value)) {
      return false;
    }
    if (*index > kIndexMax / 1000) return false;
    *index = *index * 1000 + value;
  }
  return from < parts.size();
}

}  // namespace

std::string PathOf(const LogTile& tile) {
  LOCKSTEP_CHECK(IsTile(tile));
  std::string index = absl::StrFormat("%03d", tile.index % 1000);
  for (uint64_t rest = tile.index / 1000; rest > 0; rest /= 1000) {
    index = absl::StrFormat("x%03d/%s", rest % 1000, index);
  }
  return absl::StrCat("tile/", tile.level ? absl::StrCat(*tile.level) : "entries", "/", index,
                      tile.width < kTileWidth ? absl::StrCat(".p/", tile.width) : "");
}

absl::StatusOr<LogTile> ParseTilePath(absl::string_view path) {
  const auto parse = [&]() -> std::optional<LogTile> {
    if (path.size() > 64) return std::nullopt;
    LogTile tile;
    absl::string_view name = path;
    if (const size_t partial = path.find(".p/"); partial != path.npos) {
      uint64_t width = 0;
      if (!ParseDecimal(path.substr(partial + 3), &width) || width >= kTileWidth) {
        return std::nullopt;
      }
      tile.width = static_cast<int>(width);
      name = path.substr(0, partial);
    }
    const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
    if (parts.size() < 3 || parts[0] != "tile") return std::nullopt;
    if (parts[1] != "entries") {
      uint64_t level = 0;
      if (!ParseDecimal(parts[1], &level) || level >= kTileLevels) return std::nullopt;
      tile.level = static_cast<int>(level);
    }
    if (!ParseIndex(parts, 2, &tile.index) || !IsTile(tile)) return std::nullopt;
    return tile;
  };
  const std::optional<LogTile> tile = parse();
  // One tile, one path: no needless parts such as "x000".
  if (tile && PathOf(*tile) == path) return *tile;
  return absl::InvalidArgumentError("expected the path of a log's tile; found another");
}

std::optional<LogTile> TileAt(std::optional<int> level, uint64_t index, uint64_t size) {
  const uint64_t count = CountAt(level, size);
  if (index > kIndexMax || index * kTileWidth >= count) return std::nullopt;
  const uint64_t width = std::min<uint64_t>(kTileWidth, count - index * kTileWidth);
  return LogTile{.level = level, .index = index, .width = static_cast<int>(width)};
}

std::vector<LogTile> NewTiles(uint64_t old_size, uint64_t new_size) {
  LOCKSTEP_CHECK(old_size <= new_size);
  std::vector<LogTile> tiles;
  const auto add = [&](std::optional<int> level) {
    const uint64_t count = CountAt(level, new_size);
    if (count == CountAt(level, old_size)) return;
    const uint64_t last = (count - 1) / kTileWidth;
    for (uint64_t i = CountAt(level, old_size) / kTileWidth; i <= last; ++i) {
      tiles.push_back(*TileAt(level, i, new_size));
    }
  };
  add(std::nullopt);
  for (int level = 0; level < kTileLevels; ++level) add(level);
  return tiles;
}

absl::StatusOr<std::string> HashTileBytes(const MerkleTree& tree, const LogTile& tile) {
  LOCKSTEP_CHECK(IsTile(tile) && tile.level.has_value());
  std::string bytes;
  bytes.reserve(static_cast<size_t>(tile.width) * 32);
  for (int i = 0; i < tile.width; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const Digest hash,
        tree.SubtreeRoot(kLevelBits * *tile.level, tile.first() + static_cast<uint64_t>(i)));
    absl::StrAppend(&bytes, AsChars(hash.bytes));
  }
  return bytes;
}

absl::StatusOr<std::string> EncodeEntryBundle(std::span<const std::string> entries) {
  std::string bytes;
  for (const std::string& entry : entries) {
    if (entry.size() > 0xffff) {
      return absl::ResourceExhaustedError(
          absl::StrCat("an entry of ", entry.size(), " bytes is too long for a log"));
    }
    bytes += static_cast<char>(entry.size() >> 8);
    bytes += static_cast<char>(entry.size());
    bytes += entry;
  }
  return bytes;
}

absl::StatusOr<std::vector<absl::string_view>> ParseEntryBundle(absl::string_view bytes,
                                                                int count) {
  std::vector<absl::string_view> entries;
  absl::string_view rest = bytes;
  for (int i = 0; i < count; ++i) {
    const size_t size = rest.size() < 2 ? 0
                                        : static_cast<size_t>(static_cast<uint8_t>(rest[0])) << 8 |
                                              static_cast<uint8_t>(rest[1]);
    if (rest.size() < 2 + size) {
      return absl::DataLossError(absl::StrCat("entry bundle: expected ", count, " entries; entry ",
                                              i, ", at byte ", bytes.size() - rest.size(),
                                              ", is cut short"));
    }
    entries.push_back(rest.substr(2, size));
    rest.remove_prefix(2 + size);
  }
  if (rest.empty()) return entries;
  return absl::DataLossError(absl::StrCat("entry bundle: expected nothing after ", count,
                                          " entries; found ", rest.size(), " bytes"));
}

}  // namespace lockstep::audit
