// SPDX-License-Identifier: Apache-2.0
//
// A checker of logs on the disk. See log_checker.h.

#include "coordinator/testing/log_checker.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/bytes.h"
#include "base/encoding.h"
#include "base/sha256.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

std::optional<std::string> Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Digest LeafHash(absl::string_view entry) {
  return Sha256(AsBytes(absl::StrCat(absl::string_view("\0", 1), entry)));
}

Digest NodeHash(const Digest& left, const Digest& right) {
  return Sha256(AsBytes(absl::StrCat("\x01", AsChars(left.bytes), AsChars(right.bytes))));
}

// RFC 6962, 2.1, as it stands there.
Digest TreeHash(std::span<const Digest> leaves) {
  if (leaves.empty()) return Sha256({});
  if (leaves.size() == 1) return leaves[0];
  size_t k = 1;
  while (2 * k < leaves.size()) k *= 2;
  return NodeHash(TreeHash(leaves.first(k)), TreeHash(leaves.subspan(k)));
}

std::string TilePath(const std::string& level, uint64_t n, uint64_t width) {
  std::string digits = absl::StrCat(n);
  while (digits.size() % 3 != 0) digits.insert(0, "0");
  std::string path = "tile/" + level;
  for (size_t i = 0; i < digits.size(); i += 3) {
    path += (i + 3 < digits.size() ? "/x" : "/") + digits.substr(i, 3);
  }
  return width == 256 ? path : absl::StrCat(path, ".p/", width);
}

struct Head {
  uint64_t size = 0;
  std::string root;
};

absl::StatusOr<Head> ReadHead(const std::string& path, const std::string& origin,
                              const Ed25519PublicKey& key) {
  const std::optional<std::string> note = Slurp(path);
  if (!note.has_value()) return absl::NotFoundError("no checkpoint");
  const std::vector<std::string> halves = absl::StrSplit(*note, absl::MaxSplits("\n\n", 1));
  if (halves.size() != 2) return absl::DataLossError("the checkpoint is no note");
  const std::string text = halves[0] + "\n";
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const std::vector<std::string> words = absl::StrSplit(halves[1], ' ');
  Head head;
  if (lines.size() != 4 || lines[0] != origin || !absl::SimpleAtoi(lines[1], &head.size) ||
      words.size() != 3 || words[0] != "\xe2\x80\x94" || words[1] != origin ||
      words[2].back() != '\n') {
    return absl::DataLossError("the checkpoint has another form");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(head.root, Base64Decode(lines[2]));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string signature,
                            Base64Decode(words[2].substr(0, words[2].size() - 1)));
  if (signature.size() != 68 || !VerifyEd25519(key, AsBytes(text), AsBytes(signature).subspan(4))) {
    return absl::DataLossError("the checkpoint is not signed");
  }
  return head;
}

// Entries of one bundle.
absl::Status SplitBundle(const std::string& bytes, uint64_t width,
                         std::vector<std::string>* entries) {
  size_t at = 0;
  for (uint64_t i = 0; i < width; ++i) {
    if (at + 2 > bytes.size()) return absl::DataLossError("a bundle ends early");
    const size_t size = static_cast<size_t>(static_cast<uint8_t>(bytes[at])) * 256 +
                        static_cast<uint8_t>(bytes[at + 1]);
    if (at + 2 + size > bytes.size()) return absl::DataLossError("an entry ends early");
    entries->push_back(bytes.substr(at + 2, size));
    at += 2 + size;
  }
  return at == bytes.size() ? absl::OkStatus() : absl::DataLossError("a bundle does not end");
}

absl::Status CheckTiles(const std::string& directory, std::vector<Digest> hashes) {
  for (int level = 0; !hashes.empty(); ++level) {
    std::vector<Digest> above;
    for (size_t first = 0; first < hashes.size(); first += 256) {
      const std::span<const Digest> part =
          std::span(hashes).subspan(first, std::min<size_t>(256, hashes.size() - first));
      std::string expected;
      for (const Digest& hash : part) absl::StrAppend(&expected, AsChars(hash.bytes));
      const std::string path = TilePath(absl::StrCat(level), first / 256, part.size());
      if (Slurp(directory + "/" + path) != expected) {
        return absl::DataLossError(absl::StrCat(path, " is not there or wrong"));
      }
      if (part.size() == 256) above.push_back(TreeHash(part));
    }
    hashes = std::move(above);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckLog(const std::string& directory,
                                                  const std::string& origin,
                                                  const Ed25519PublicKey& key) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Head head, ReadHead(directory + "/checkpoint", origin, key));
  std::vector<std::string> entries;
  for (uint64_t n = 0; n * 256 < head.size; ++n) {
    const uint64_t width = std::min<uint64_t>(256, head.size - n * 256);
    const std::string path = TilePath("entries", n, width);
    const std::optional<std::string> bytes = Slurp(directory + "/" + path);
    if (!bytes.has_value()) return absl::DataLossError(path + " is not there");
    LOCKSTEP_RETURN_IF_ERROR(SplitBundle(*bytes, width, &entries), path);
  }
  std::vector<Digest> hashes;
  for (const std::string& entry : entries) hashes.push_back(LeafHash(entry));
  if (AsChars(TreeHash(hashes).bytes) != head.root) {
    return absl::DataLossError("the entries do not have the signed root");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckTiles(directory, std::move(hashes)));
  return entries;
}

}  // namespace lockstep::coordinator
