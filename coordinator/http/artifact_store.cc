// SPDX-License-Identifier: Apache-2.0
//
// See artifact_store.h.
#include "coordinator/http/artifact_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/canonical_json.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kOwnerBytesMax = 256;
constexpr size_t kClaimOwnerBytesMax = 200;
// Before the names of trainers, on the disk too.
constexpr char kTrainerPrefix[] = "trainer:";
constexpr size_t kSidecarBytesMax = 4096;
constexpr char kPartial[] = ".partial";
constexpr char kJson[] = ".json";

struct Sidecar {
  Digest digest;
  uint64_t bytes = 0;
  std::string owner;
};

absl::StatusOr<std::string> SidecarText(const Sidecar& sidecar) {
  return CanonicalJson(
      {{"bytes", sidecar.bytes}, {"owner", sidecar.owner}, {"sha256", sidecar.digest.ToHex()}});
}

absl::StatusOr<Sidecar> ReadSidecar(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kSidecarBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), path);
  JsonReader reader(json, path);
  Sidecar sidecar;
  sidecar.bytes = static_cast<uint64_t>(reader.Integer("bytes", 0, kJsonIntegerMax));
  sidecar.owner = reader.String("owner", kOwnerBytesMax);
  sidecar.digest = reader.Sha256Digest("sha256");
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return sidecar;
}

bool IsWorkers(const std::string& owner) {
  return !owner.empty() && !absl::StartsWith(owner, kTrainerPrefix);
}

// Of a regular file that is no link.
std::optional<struct stat> StatFile(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArtifactStore>> ArtifactStore::Open(
    const std::string& folder, const ArtifactStoreOptions& options) {
  for (const char* name : {"/artifact", "/uploads", "/owners"}) {
    LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder + name));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(DirectoryLock lock, DirectoryLock::Take(folder));
  LOCKSTEP_ASSIGN_OR_RETURN(auto artifacts, Folder::Open(folder + "/artifact"));
  std::unique_ptr<ArtifactStore> store(
      new ArtifactStore(folder, options, std::move(lock), std::move(artifacts)));
  LOCKSTEP_RETURN_IF_ERROR(store->Scan(), "artifacts in ", folder);
  store->Expire();
  return store;
}

ArtifactStore::~ArtifactStore() = default;

std::string ArtifactStore::ArtifactPath(const Digest& digest) const {
  return absl::StrCat(folder_, "/artifact/", digest.ToHex());
}

std::string ArtifactStore::OwnerPath(const Digest& digest) const {
  return absl::StrCat(folder_, "/owners/", digest.ToHex(), kJson);
}

std::string ArtifactStore::UploadPath(const Key& key, const char* suffix) const {
  return absl::StrCat(folder_, "/uploads/", key.first.ToHex(), "-",
                      Sha256(AsBytes(key.second)).ToHex().substr(0, 16), suffix);
}

void ArtifactStore::Count(const std::string& owner, uint64_t bytes) {
  bytes_ += bytes;
  if (!owner.empty()) owner_bytes_[owner] += bytes;
  if (IsWorkers(owner)) workers_bytes_ += bytes;
}

void ArtifactStore::Uncount(const std::string& owner, uint64_t bytes) {
  bytes_ -= bytes;
  if (IsWorkers(owner)) workers_bytes_ -= bytes;
  const auto entry = owner_bytes_.find(owner);
  if (entry == owner_bytes_.end()) return;
  entry->second -= bytes;
  if (entry->second == 0) owner_bytes_.erase(entry);
}

absl::Status ArtifactStore::ScanArtifacts() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            ListDirectory(folder_ + "/artifact"));
  for (const std::string& name : names) {
    const absl::StatusOr<Digest> digest = Digest::FromHex(name);
    if (!digest.ok() || digest->ToHex() != name) continue;
    const auto info = StatFile(ArtifactPath(*digest));
    if (!info) continue;
    Whole whole{.bytes = static_cast<uint64_t>(info->st_size),
                .owner = {},
                .since = absl::TimeFromTimespec(info->st_mtim)};
    if (StatFile(OwnerPath(*digest))) {
      const absl::StatusOr<Sidecar> sidecar = ReadSidecar(OwnerPath(*digest));
      if (sidecar.ok() && sidecar->digest == *digest) {
        whole.owner = sidecar->owner;
      } else {
        LOCKSTEP_LOG_WARNING("{} counts for nobody: {}", OwnerPath(*digest), sidecar.status());
      }
    }
    Count(whole.owner, whole.bytes);
    whole_.emplace(*digest, std::move(whole));
  }
  return absl::OkStatus();
}

// A file of an upload, by its .json; what is half made is removed.
absl::Status ArtifactStore::ScanUpload(const std::string& name) {
  const std::string path = absl::StrCat(folder_, "/uploads/", name);
  const absl::StatusOr<Sidecar> sidecar = ReadSidecar(path);
  if (!sidecar.ok()) {
    LOCKSTEP_LOG_WARNING("an upload is dropped: {}", sidecar.status());
    ::unlink(path.c_str());
    return absl::OkStatus();
  }
  Key key{sidecar->digest, sidecar->owner};
  if (UploadPath(key, kJson) != path) {
    ::unlink(path.c_str());
    return absl::OkStatus();
  }
  if (const auto whole = whole_.find(key.first); whole != whole_.end()) {
    // Stopped between the two renames of Finish; or somebody else was faster.
    const bool finished = !StatFile(UploadPath(key, kPartial)) && whole->second.owner.empty();
    if (finished && ::rename(path.c_str(), OwnerPath(key.first).c_str()) == 0) {
      Uncount(whole->second.owner, whole->second.bytes);
      whole->second.owner = key.second;
      Count(key.second, whole->second.bytes);
    }
    ::unlink(path.c_str());
    return absl::OkStatus();
  }
  const auto partial = StatFile(UploadPath(key, kPartial));
  const auto touched = StatFile(partial ? UploadPath(key, kPartial) : path);
  Pending pending{.bytes = sidecar->bytes, .touched = options_.clock->Now()};
  if (touched) pending.touched = absl::TimeFromTimespec(touched->st_mtim);
  Count(key.second, pending.bytes);
  pending_.emplace(std::move(key), std::move(pending));
  return absl::OkStatus();
}

absl::Status ArtifactStore::Scan() {
  const std::lock_guard<std::mutex> lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(ScanArtifacts());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            ListDirectory(folder_ + "/uploads"));
  for (const std::string& name : names) {
    if (absl::EndsWith(name, kJson)) LOCKSTEP_RETURN_IF_ERROR(ScanUpload(name));
  }
  // Bytes that nobody is known to have sent, and what DurableFile left.
  std::set<std::string> known;
  for (const auto& [key, pending] : pending_) {
    known.insert(UploadPath(key, kJson));
    known.insert(UploadPath(key, kPartial));
  }
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder_, "/uploads/", name);
    if (!known.contains(path)) ::unlink(path.c_str());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const OpenFile>> ArtifactStore::Find(const Digest& digest) const {
  return artifacts_->OpenBeneath(digest.ToHex());
}

uint64_t ArtifactStore::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

// Under the mutex, for an upload that is new. `name`: the owner's, as it is kept.
absl::Status ArtifactStore::CheckRoom(const Claim& claim, const std::string& name) const {
  const size_t of_owner = std::count_if(pending_.begin(), pending_.end(), [&](const auto& entry) {
    return entry.first.second == name;
  });
  const size_t of_kind = std::count_if(pending_.begin(), pending_.end(), [&](const auto& entry) {
    return IsWorkers(entry.first.second) != claim.trainer;
  });
  if (of_owner >= options_.uploads_per_owner_max || of_kind >= options_.uploads_max) {
    return absl::UnavailableError("too many uploads are under way");
  }
  if (!claim.trainer && (claim.bytes > options_.workers_bytes_max ||
                         workers_bytes_ > options_.workers_bytes_max - claim.bytes)) {
    return absl::ResourceExhaustedError("workers' share of the store is full");
  }
  const auto owner = owner_bytes_.find(name);
  const uint64_t has = owner == owner_bytes_.end() ? 0 : owner->second;
  if (claim.bytes > claim.owner_bytes_max || has > claim.owner_bytes_max - claim.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the quota of ", claim.owner_bytes_max,
                                                     " bytes is used up: ", has, " are here"));
  }
  if (claim.bytes > options_.bytes_max || bytes_ > options_.bytes_max - claim.bytes) {
    return absl::ResourceExhaustedError("the store is full");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ArtifactStore::Upload>> ArtifactStore::Resume(const Claim& claim) {
  if (claim.owner.empty() || claim.owner.size() > kClaimOwnerBytesMax ||
      absl::StrContains(claim.owner, ':')) {
    return absl::InvalidArgumentError("expected an owner of at most 200 bytes without \":\"");
  }
  if (claim.bytes > std::min<uint64_t>(options_.artifact_bytes_max, kJsonIntegerMax)) {
    return absl::OutOfRangeError(
        absl::StrCat("an artifact has at most ", options_.artifact_bytes_max, " bytes"));
  }
  const Key key{claim.digest, absl::StrCat(claim.trainer ? kTrainerPrefix : "", claim.owner)};
  std::unique_lock<std::mutex> lock(mutex_);
  if (StatFile(ArtifactPath(claim.digest))) {
    // Somebody else was faster.
    if (const auto mine = pending_.find(key); mine != pending_.end() && !mine->second.held) {
      Drop(key);
    }
    return absl::AlreadyExistsError("the artifact is here");
  }
  auto entry = pending_.find(key);
  const bool is_new = entry == pending_.end();
  if (is_new) {
    LOCKSTEP_RETURN_IF_ERROR(CheckRoom(claim, key.second));
    entry = pending_.emplace(key, Pending{.bytes = claim.bytes, .touched = {}}).first;
    Count(key.second, claim.bytes);
  }
  Pending& pending = entry->second;
  if (pending.held) return absl::UnavailableError("this upload is being written to");
  if (pending.bytes != claim.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("this upload was begun with ", pending.bytes, " bytes"));
  }
  pending.held = true;
  pending.touched = options_.clock->Now();
  std::optional<PartialFile> file = std::exchange(pending.file, std::nullopt);
  lock.unlock();

  // Nobody else touches what is held.
  absl::Status status;
  if (is_new) {
    const auto text = SidecarText({claim.digest, claim.bytes, key.second});
    status = text.ok() ? WriteFileDurably(UploadPath(key, kJson), AsBytes(*text)) : text.status();
  }
  if (status.ok() && !file) {
    absl::StatusOr<PartialFile> opened = PartialFile::Open(UploadPath(key, kPartial), claim.bytes);
    status = opened.status();
    if (opened.ok()) file = *std::move(opened);
  }
  if (status.ok()) {
    return std::unique_ptr<Upload>(new Upload(*this, key, claim.bytes, *std::move(file)));
  }
  lock.lock();
  pending_.at(key).held = false;
  if (is_new) Drop(key);
  return status;
}

// Under the mutex.
void ArtifactStore::Drop(const Key& key) {
  const auto entry = pending_.find(key);
  Uncount(key.second, entry->second.bytes);
  pending_.erase(entry);
  ::unlink(UploadPath(key, kPartial).c_str());
  ::unlink(UploadPath(key, kJson).c_str());
}

void ArtifactStore::Release(const Key& key, PartialFile file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Pending& pending = pending_.at(key);
  pending.file = std::move(file);
  pending.held = false;
  pending.touched = options_.clock->Now();
}

absl::Status ArtifactStore::Finish(const Key& key, PartialFile file) {
  const Digest found = file.FinishDigest();
  absl::Status status;
  if (found != key.first) {
    status = absl::DataLossError(absl::StrCat("the bytes have the digest ", found.ToHex()));
  } else {
    status = file.Commit(ArtifactPath(key.first));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!status.ok()) {
    Drop(key);
    return status;
  }
  // The bytes go over from the upload to the artifact; of two that were as fast, the first counts.
  Uncount(key.second, pending_.at(key).bytes);
  const auto [whole, is_first] = whole_.try_emplace(
      key.first,
      Whole{.bytes = pending_.at(key).bytes, .owner = key.second, .since = options_.clock->Now()});
  if (is_first) {
    Count(key.second, whole->second.bytes);
    ::rename(UploadPath(key, kJson).c_str(), OwnerPath(key.first).c_str());
  }
  pending_.erase(key);
  ::unlink(UploadPath(key, kJson).c_str());
  return absl::OkStatus();
}

int ArtifactStore::Expire() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Time now = options_.clock->Now();
  std::vector<Key> expired;
  for (const auto& [key, pending] : pending_) {
    if (!pending.held && now - pending.touched > options_.upload_ttl) expired.push_back(key);
  }
  for (const Key& key : expired) Drop(key);
  return static_cast<int>(expired.size());
}

std::vector<std::pair<Digest, absl::Duration>> ArtifactStore::OfWorkers() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Time now = options_.clock->Now();
  std::vector<std::pair<Digest, absl::Duration>> found;
  for (const auto& [digest, whole] : whole_) {
    if (IsWorkers(whole.owner)) found.emplace_back(digest, now - whole.since);
  }
  return found;
}

absl::Status ArtifactStore::Remove(const Digest& digest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (::unlink(ArtifactPath(digest).c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("remove ", ArtifactPath(digest)));
  }
  ::unlink(OwnerPath(digest).c_str());
  if (const auto whole = whole_.find(digest); whole != whole_.end()) {
    Uncount(whole->second.owner, whole->second.bytes);
    whole_.erase(whole);
  }
  return absl::OkStatus();
}

ArtifactStore::Upload::~Upload() {
  if (file_) store_.Release(key_, *std::move(file_));
}

absl::Status ArtifactStore::Upload::Append(ByteSpan bytes) {
  LOCKSTEP_CHECK(bytes.size() <= bytes_ - offset());
  return file_->Append(bytes);
}

absl::Status ArtifactStore::Upload::Sync() {
  const absl::Status status = file_->Sync();
  if (status.ok()) return status;
  file_->Remove();
  file_.reset();
  const std::lock_guard<std::mutex> lock(store_.mutex_);
  store_.Drop(key_);
  return status;
}

absl::Status ArtifactStore::Upload::Finish() {
  LOCKSTEP_CHECK(offset() == bytes_);
  PartialFile file = *std::move(file_);
  file_.reset();
  return store_.Finish(key_, std::move(file));
}

}  // namespace lockstep::coordinator
