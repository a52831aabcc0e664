// SPDX-License-Identifier: Apache-2.0
//
// See artifact_cache.h.
#include "net/artifact_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/directory.h"
#include "base/logging.h"
#include "base/status.h"
#include "net/artifact_fetch.h"

namespace lockstep::net {
namespace {

// The size of a regular file, followed by no link; nullopt for anything else.
std::optional<struct stat> RegularFile(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info;
}

uint64_t FreeBytes(const std::string& folder) {
  struct statvfs info;
  if (::statvfs(folder.c_str(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace

ArtifactCache::Pin::Pin(Pin&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      digest_(other.digest_),
      path_(std::move(other.path_)) {}

ArtifactCache::Pin& ArtifactCache::Pin::operator=(Pin&& other) noexcept {
  std::swap(cache_, other.cache_);
  std::swap(digest_, other.digest_);
  std::swap(path_, other.path_);
  return *this;
}

ArtifactCache::Pin::~Pin() {
  if (cache_ != nullptr) cache_->Unpin(digest_);
}

absl::StatusOr<std::unique_ptr<ArtifactCache>> ArtifactCache::Open(const std::string& folder,
                                                                   const CacheOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder));
  LOCKSTEP_ASSIGN_OR_RETURN(DirectoryLock lock, DirectoryLock::Take(folder));
  std::unique_ptr<ArtifactCache> cache(new ArtifactCache(folder, options, std::move(lock)));
  LOCKSTEP_RETURN_IF_ERROR(cache->Scan());
  return cache;
}

absl::Status ArtifactCache::Scan() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder_));
  // By last use, then name.
  std::vector<std::tuple<int64_t, int64_t, Digest, State, uint64_t>> found;
  for (const std::string& name : names) {
    absl::string_view digits = name;
    const State state =
        absl::ConsumeSuffix(&digits, kPartialSuffix) ? State::kPartial : State::kWhole;
    const absl::StatusOr<Digest> digest = Digest::FromHex(digits);
    if (!digest.ok() || digest->ToHex() != digits) continue;
    const std::optional<struct stat> info = RegularFile(absl::StrCat(folder_, "/", name));
    if (!info) continue;
    found.emplace_back(info->st_mtim.tv_sec, info->st_mtim.tv_nsec, *digest, state,
                       static_cast<uint64_t>(info->st_size));
  }
  std::sort(found.begin(), found.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [seconds, nanoseconds, digest, state, bytes] : found) {
    const auto [at, is_new] = entries_.try_emplace(digest, Entry{state, bytes, ++use_count_});
    if (is_new) {
      bytes_ += bytes;
      continue;
    }
    // A whole file needs no partial one.
    ::unlink((PathOf(digest) + kPartialSuffix).c_str());
    if (state == State::kWhole) {
      bytes_ += bytes - at->second.bytes;
      at->second.state = state;
      at->second.bytes = bytes;
    }
  }
  while (bytes_ > options_.bytes_max && DropOldest()) {
  }
  return absl::OkStatus();
}

std::string ArtifactCache::PathOf(const Digest& digest) const {
  return absl::StrCat(folder_, "/", digest.ToHex());
}

// Under the mutex.
ArtifactCache::Pin ArtifactCache::Use(const Digest& digest, Entry& entry) {
  ++entry.pins;
  entry.used = ++use_count_;
  std::string path = PathOf(digest);
  const timespec now = absl::ToTimespec(options_.clock->Now());
  const timespec times[2] = {now, now};
  ::utimensat(AT_FDCWD, path.c_str(), times,
              0);  // for the next process; a failure costs order only
  return Pin(this, digest, std::move(path));
}

void ArtifactCache::Unpin(const Digest& digest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = entries_.find(digest);
  LOCKSTEP_CHECK(entry != entries_.end() && entry->second.pins > 0);
  --entry->second.pins;
}

uint64_t ArtifactCache::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

std::optional<ArtifactCache::Pin> ArtifactCache::Find(const Digest& digest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = entries_.find(digest);
  if (entry == entries_.end() || entry->second.state != State::kWhole) return std::nullopt;
  return Use(digest, entry->second);
}

// Under the mutex. False if all that is left is in use.
bool ArtifactCache::DropOldest() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.pins > 0 || entry->second.state == State::kFetching) continue;
    if (oldest == entries_.end() || entry->second.used < oldest->second.used) oldest = entry;
  }
  if (oldest == entries_.end()) return false;
  const std::string path = PathOf(oldest->first);
  const bool whole = oldest->second.state == State::kWhole;
  ::unlink((whole ? path : path + kPartialSuffix).c_str());
  bytes_ -= oldest->second.bytes;
  entries_.erase(oldest);
  return true;
}

// Under the mutex.
absl::Status ArtifactCache::MakeRoom(uint64_t bytes) {
  if (bytes > options_.bytes_max) {
    return absl::ResourceExhaustedError(absl::StrCat("an artifact of ", bytes,
                                                     " bytes does not fit into the cache ", folder_,
                                                     " of ", options_.bytes_max));
  }
  while (bytes_ > options_.bytes_max - bytes) {
    if (!DropOldest()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for ", bytes, " bytes in the cache ", folder_, " of ",
                       options_.bytes_max, ": ", bytes_, " are in use"));
    }
  }
  while (options_.disk_free_bytes_min > 0 &&
         FreeBytes(folder_) < bytes + options_.disk_free_bytes_min) {
    if (!DropOldest()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for ", bytes, " bytes on the disk of ", folder_, ", of which ",
                       options_.disk_free_bytes_min, " are to stay free"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ArtifactCache::Pin> ArtifactCache::Get(const Digest& digest, uint64_t bytes,
                                                      Fetch fetch) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const auto entry = entries_.find(digest);
    if (entry == entries_.end() || entry->second.state == State::kPartial) break;
    if (entry->second.state == State::kWhole) return Use(digest, entry->second);
    fetched_.wait(lock);
  }
  // What is there of it already must not be dropped to make room, and counts at its full size.
  Entry& entry = entries_.try_emplace(digest, Entry{State::kFetching, 0, 0}).first->second;
  entry.state = State::kFetching;
  bytes_ -= entry.bytes;
  entry.bytes = 0;
  return FetchInto(digest, bytes, fetch, lock);
}

absl::StatusOr<ArtifactCache::Pin> ArtifactCache::FetchInto(const Digest& digest, uint64_t bytes,
                                                            Fetch fetch,
                                                            std::unique_lock<std::mutex>& lock) {
  const std::string path = PathOf(digest);
  absl::Status status = MakeRoom(bytes);
  Entry& entry = entries_.at(digest);
  if (status.ok()) {
    entry.bytes = bytes;
    bytes_ += bytes;
    do {
      lock.unlock();
      status = fetch(path);
      lock.lock();
    } while (absl::IsResourceExhausted(status) && DropOldest());
  }
  std::optional<struct stat> info = RegularFile(path);
  if (status.ok() && !info) {
    status = absl::InternalError(absl::StrCat("fetched, but there is no file ", path));
  }
  entry.state = status.ok() ? State::kWhole : State::kPartial;
  if (!status.ok()) info = RegularFile(path + kPartialSuffix);
  bytes_ -= entry.bytes;
  entry.bytes = info ? static_cast<uint64_t>(info->st_size) : 0;
  bytes_ += entry.bytes;
  entry.used = ++use_count_;
  fetched_.notify_all();
  if (status.ok()) return Use(digest, entry);
  if (!info && entry.pins == 0) entries_.erase(digest);
  return status;
}

void ArtifactCache::Discard(const Digest& digest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = entries_.find(digest);
  if (entry == entries_.end() || entry->second.state != State::kWhole) return;
  ::unlink(PathOf(digest).c_str());
  bytes_ -= entry->second.bytes;
  entry->second.bytes = 0;
  entry->second.state = State::kPartial;
  if (entry->second.pins == 0) entries_.erase(entry);
}

}  // namespace lockstep::net
