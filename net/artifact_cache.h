// SPDX-License-Identifier: Apache-2.0
//
// A folder of artifacts named by digest, with a cap on its size: what was used longest ago goes
// first, what is in use stays. Fetching is the caller's (artifact_fetch.h). One process at a time.
//
// FOLDER/<64 digits>: an artifact, whole and checked. FOLDER/<64 digits>.partial: one in the making
// (it counts, and may be dropped). FOLDER/lock: held by the process (flock). A file's modification
// time is that of its last use; there is no index that a crash could tear. Other names are let be.
#ifndef LOCKSTEP_NET_ARTIFACT_CACHE_H_
#define LOCKSTEP_NET_ARTIFACT_CACHE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/directory_lock.h"
#include "base/sha256.h"

namespace lockstep::net {

struct CacheOptions {
  uint64_t bytes_max = 0;
  uint64_t disk_free_bytes_min = 0;  // left to others on that file system
  const Clock* clock = &RealClock();
};

// Any thread may call. Pins must not outlive the cache.
class ArtifactCache {
 public:
  // An artifact in use: its file stays until the pin goes. Move-only.
  class Pin {
   public:
    Pin(Pin&& other) noexcept;
    Pin& operator=(Pin&& other) noexcept;
    ~Pin();
    const std::string& path() const { return path_; }

   private:
    friend class ArtifactCache;
    Pin(ArtifactCache* cache, const Digest& digest, std::string path)
        : cache_(cache), digest_(digest), path_(std::move(path)) {}
    ArtifactCache* cache_;
    Digest digest_;
    std::string path_;
  };

  // Makes the folder if need be. FailedPrecondition if another process has it. A folder over the
  // cap is cut down to it.
  static absl::StatusOr<std::unique_ptr<ArtifactCache>> Open(const std::string& folder,
                                                             const CacheOptions& options);
  ArtifactCache(const ArtifactCache&) = delete;
  ArtifactCache& operator=(const ArtifactCache&) = delete;

  // nullopt if it is not there.
  std::optional<Pin> Find(const Digest& digest);

  // Puts an artifact of at most `bytes` at the path given, or at none.
  using Fetch = absl::FunctionRef<absl::Status(const std::string& path)>;
  // Finds it, or makes room and fetches it. Who asks for one that another thread is fetching waits
  // for that. Should the disk be full (`fetch` returns ResourceExhausted), artifacts are dropped
  // and `fetch` called again. ResourceExhausted if what is pinned leaves no room.
  absl::StatusOr<Pin> Get(const Digest& digest, uint64_t bytes, Fetch fetch);

  // For a file that was found damaged: the next Get fetches it again. Pins on it stay valid.
  void Discard(const Digest& digest);

  // Of all files, and what is being fetched at its full size.
  uint64_t bytes() const;

 private:
  enum class State { kWhole, kPartial, kFetching };
  struct Entry {
    State state;
    uint64_t bytes;
    uint64_t used;  // by use_count_
    int pins = 0;
  };

  ArtifactCache(std::string folder, const CacheOptions& options, DirectoryLock lock)
      : folder_(std::move(folder)), options_(options), lock_(std::move(lock)) {}
  absl::Status Scan();
  std::string PathOf(const Digest& digest) const;
  Pin Use(const Digest& digest, Entry& entry);
  void Unpin(const Digest& digest);
  bool DropOldest();
  absl::Status MakeRoom(uint64_t bytes);
  absl::StatusOr<Pin> FetchInto(const Digest& digest, uint64_t bytes, Fetch fetch,
                                std::unique_lock<std::mutex>& lock);

  const std::string folder_;
  const CacheOptions options_;
  const DirectoryLock lock_;
  mutable std::mutex mutex_;  // over all that follows
  std::condition_variable fetched_;
  std::map<Digest, Entry> entries_;
  uint64_t bytes_ = 0;      // the sum over entries_
  uint64_t use_count_ = 0;  // grows with each use
};

}  // namespace lockstep::net

#endif  // LOCKSTEP_NET_ARTIFACT_CACHE_H_
