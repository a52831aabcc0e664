// SPDX-License-Identifier: Apache-2.0
//
// Items as canonical JSON, files in three folders.
#include "worker/outbox.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "audit/evidence/log_entry.h"
#include "audit/ledger/receipt.h"
#include "base/canonical_json.h"
#include "base/directory.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::worker {
namespace {

constexpr size_t kItemBytesMax = size_t{1} << 30;
constexpr size_t kLeavesMax = size_t{1} << 20;
constexpr size_t kLeafBytesMax = size_t{1} << 20;
constexpr size_t kTextBytesMax = 4096;

std::string KeyOf(absl::string_view origin, const Digest& run_id, uint64_t step) {
  return absl::StrCat(run_id.ToHex(), "-", step, "-",
                      Sha256(AsBytes(origin)).ToHex().substr(0, 16));
}

absl::StatusOr<std::string> EncodeItem(const OutboxItem& item) {
  nlohmann::json leaves = nlohmann::json::array();
  for (const audit::TranscriptLeaf& leaf : item.leaves) {
    leaves.push_back(Base64Encode(AsBytes(audit::EncodeTranscriptLeaf(leaf))));
  }
  nlohmann::json json = {{"envelope", Base64Encode(AsBytes(item.envelope))},
                         {"leaseId", HexEncode(AsBytes(item.lease_id))},
                         {"leaves", std::move(leaves)},
                         {"nonce", item.nonce.ToHex()},
                         {"openings", item.openings},
                         {"origin", item.origin},
                         {"run", item.run_id.ToHex()},
                         {"step", item.step},
                         {"trainerSigned", item.trainer_signed ? 1 : 0}};
  if (item.challenge) json["challenge"] = HexEncode(*item.challenge);
  return CanonicalJson(json);
}

absl::StatusOr<OutboxItem> ParseItem(absl::string_view text, const std::string& where) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), where);
  JsonReader reader(json, where);
  OutboxItem item;
  const auto decode = [&](const char* key, absl::StatusOr<std::string> bytes) {
    if (bytes.ok()) return *std::move(bytes);
    reader.Fail(key, "encoded bytes", bytes.status().message());
    return std::string();
  };
  item.origin = reader.String("origin", kTextBytesMax);
  item.run_id = reader.Sha256Digest("run");
  item.step = static_cast<uint64_t>(reader.Integer("step", 0, kJsonIntegerMax));
  item.lease_id = decode("leaseId", HexDecode(reader.String("leaseId", kTextBytesMax)));
  item.envelope =
      decode("envelope", Base64Decode(reader.String("envelope", 2 * audit::kLogEntryBytesMax)));
  item.trainer_signed = reader.Integer("trainerSigned", 0, 1) == 1;
  item.nonce = reader.Sha256Digest("nonce");
  item.openings = static_cast<int>(reader.Integer("openings", 0, audit::kQuorumOpeningsMax));
  for (const nlohmann::json& leaf : reader.Array("leaves", kLeavesMax)) {
    const auto* const leaf_text = leaf.get_ptr<const std::string*>();
    if (leaf_text == nullptr || leaf_text->size() > kLeafBytesMax) {
      reader.Fail("leaves", "base64", "something else");
      break;
    }
    const std::string bytes = decode("leaves", Base64Decode(*leaf_text));
    absl::StatusOr<audit::TranscriptLeaf> decoded = audit::DecodeTranscriptLeaf(AsBytes(bytes));
    reader.Join(decoded.status());
    if (!decoded.ok()) break;
    item.leaves.push_back(*std::move(decoded));
  }
  if (reader.Has("challenge")) {
    const std::string bytes =
        decode("challenge", HexDecode(reader.String("challenge", 2 * kEd25519SignatureBytes)));
    item.challenge.emplace();
    if (bytes.size() == kEd25519SignatureBytes) {
      std::copy(bytes.begin(), bytes.end(), item.challenge->begin());
    } else {
      reader.Fail("challenge", "64 bytes", absl::StrCat(bytes.size()));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return item;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Outbox>> Outbox::Open(const std::string& folder) {
  for (const char* name : {"pending", "receipts", "refused"}) {
    LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(folder, "/", name)));
  }
  std::unique_ptr<Outbox> outbox(new Outbox(folder));
  LOCKSTEP_RETURN_IF_ERROR(outbox->Scan());
  return outbox;
}

// What kills left of files in the making.
absl::Status Outbox::RemoveTemporaries() const {
  for (const char* name : {"pending", "receipts", "refused"}) {
    const std::string folder = absl::StrCat(folder_, "/", name);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListDirectory(folder));
    for (const std::string& file : files) {
      if (!absl::StartsWith(file, ".lockstep-")) continue;
      const std::string path = absl::StrCat(folder, "/", file);
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
        return absl::ErrnoToStatus(errno, absl::StrCat("remove ", path));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Outbox::Scan() {
  LOCKSTEP_RETURN_IF_ERROR(RemoveTemporaries());
  const absl::MutexLock lock(&mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> receipts,
                            ListDirectory(folder_ + "/receipts"));
  for (absl::string_view name : receipts) {
    if (absl::ConsumeSuffix(&name, ".json")) known_.emplace(name);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> refused,
                            ListDirectory(folder_ + "/refused"));
  for (const std::string& name : refused) refused_ += absl::EndsWith(name, ".json") ? 1 : 0;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            ListDirectory(folder_ + "/pending"));
  for (const std::string& name : names) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || absl::string_view(end) != ".json") continue;
    const std::string path = PathOf(number);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kItemBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(const OutboxItem item, ParseItem(text, path));
    const std::string key = KeyOf(item.origin, item.run_id, item.step);
    known_.insert(key);
    pending_[number] = {.key = key, .origin = item.origin};
    next_ = std::max(next_, number + 1);
  }
  return absl::OkStatus();
}

std::string Outbox::PathOf(uint64_t number) const {
  return absl::StrFormat("%s/pending/%08d.json", folder_, number);
}

absl::Status Outbox::Add(const OutboxItem& item) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, EncodeItem(item));
  const std::string key = KeyOf(item.origin, item.run_id, item.step);
  const absl::MutexLock lock(&mutex_);
  if (known_.contains(key)) {
    return absl::AlreadyExistsError(
        absl::StrCat("step ", item.step, " of run ", item.run_id.ToHex(), " was attested before"));
  }
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(PathOf(next_), AsBytes(text), 0600));
  known_.insert(key);
  pending_[next_++] = {.key = key, .origin = item.origin};
  return absl::OkStatus();
}

bool Outbox::Knows(absl::string_view origin, const Digest& run_id, uint64_t step) const {
  const absl::MutexLock lock(&mutex_);
  return known_.contains(KeyOf(origin, run_id, step));
}

std::vector<uint64_t> Outbox::Pending() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<uint64_t> numbers;
  for (const auto& [number, unused] : pending_) numbers.push_back(number);
  return numbers;
}

std::vector<uint64_t> Outbox::Pending(absl::string_view origin) const {
  const absl::MutexLock lock(&mutex_);
  std::vector<uint64_t> numbers;
  for (const auto& [number, waiting] : pending_) {
    if (waiting.origin == origin) numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<OutboxItem> Outbox::Read(uint64_t number) const {
  const std::string path = PathOf(number);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kItemBytesMax));
  return ParseItem(text, path);
}

absl::Status Outbox::Acknowledge(uint64_t number, const audit::LogProof& proof,
                                 const std::optional<Ed25519Signature>& challenge) {
  LOCKSTEP_ASSIGN_OR_RETURN(OutboxItem item, Read(number));
  item.challenge = challenge;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, EncodeItem(item));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string receipt,
                            audit::EncodeReceipt({.entry = item.envelope, .proof = proof}));
  // The receipt first: a kill in between asks for the same receipt again.
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(
      absl::StrCat(folder_, "/receipts/", KeyOf(item.origin, item.run_id, item.step), ".json"),
      AsBytes(receipt)));
  return WriteFileDurably(PathOf(number), AsBytes(text), 0600);
}

absl::Status Outbox::Remove(uint64_t number) {
  const std::string path = PathOf(number);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("remove ", path));
  }
  pending_.erase(number);
  return absl::OkStatus();
}

absl::Status Outbox::Finish(uint64_t number) {
  const absl::MutexLock lock(&mutex_);
  return Remove(number);
}

absl::Status Outbox::Drop(uint64_t number) {
  const absl::MutexLock lock(&mutex_);
  const auto found = pending_.find(number);
  if (found == pending_.end()) return absl::OkStatus();
  const std::string key = found->second.key;
  LOCKSTEP_RETURN_IF_ERROR(Remove(number));
  known_.erase(key);
  return absl::OkStatus();
}

absl::Status Outbox::Refuse(uint64_t number, absl::string_view reason) {
  LOCKSTEP_ASSIGN_OR_RETURN(const OutboxItem item, Read(number));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            CanonicalJson({{"envelope", Base64Encode(AsBytes(item.envelope))},
                                           {"leaseId", HexEncode(AsBytes(item.lease_id))},
                                           {"origin", item.origin},
                                           {"reason", std::string(reason)}}));
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(
      absl::StrCat(folder_, "/refused/", KeyOf(item.origin, item.run_id, item.step), "-",
                   HexEncode(AsBytes(item.lease_id)), ".json"),
      AsBytes(text)));
  const absl::MutexLock lock(&mutex_);
  ++refused_;
  if (!item.challenge) known_.erase(KeyOf(item.origin, item.run_id, item.step));
  return Remove(number);
}

size_t Outbox::refused() const {
  const absl::MutexLock lock(&mutex_);
  return refused_;
}

}  // namespace lockstep::worker
