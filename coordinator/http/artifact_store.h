// SPDX-License-Identifier: Apache-2.0
//
// Artifacts on the coordinator's disk, named by SHA-256, and uploads on their way to become some.
// An artifact is visible once its digest was found right, and then never changes.
//
//   FOLDER/lock                        held by the process
//   FOLDER/artifact/<64 digits>        whole; the folder itself is a static mirror
//   FOLDER/uploads/<64 digits>-<16>.partial, .json   an upload by one owner, and what it is to be
//   FOLDER/owners/<64 digits>.json     who uploaded an artifact; without one, it counts for nobody
//
// An upload belongs to its owner: strangers' wrong bytes under the same digest are not mixed with
// it. All survives a kill at any moment; what is acknowledged survives a power failure.
#ifndef LOCKSTEP_COORDINATOR_HTTP_ARTIFACT_STORE_H_
#define LOCKSTEP_COORDINATOR_HTTP_ARTIFACT_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/directory_lock.h"
#include "base/partial_file.h"
#include "base/sha256.h"
#include "coordinator/http/folder.h"

namespace lockstep::coordinator {

struct ArtifactStoreOptions {
  uint64_t artifact_bytes_max = uint64_t{64} << 30;
  uint64_t bytes_max = uint64_t{1} << 40;  // of all, uploads at the size they are to have
  // Of those within it, that workers have brought and are to bring: the rest is the trainers'.
  uint64_t workers_bytes_max = uint64_t{1} << 38;
  size_t uploads_per_owner_max = 16;
  size_t uploads_max = 256;                     // under way: of trainers so many, and of workers
  absl::Duration upload_ttl = absl::Hours(24);  // without a byte, then it is dropped
  const Clock* clock = &RealClock();
};

// Any thread may call.
class ArtifactStore {
 public:
  class Upload;

  // Makes the folders if need be, takes up what an earlier process left, and drops what has
  // expired. FailedPrecondition if another process has the folder.
  static absl::StatusOr<std::unique_ptr<ArtifactStore>> Open(const std::string& folder,
                                                             const ArtifactStoreOptions& options);
  ~ArtifactStore();

  // NotFound if it is not there (whole).
  absl::StatusOr<std::shared_ptr<const OpenFile>> Find(const Digest& digest) const;

  struct Claim {
    Digest digest;
    uint64_t bytes = 0;        // that it is to have
    std::string owner;         // an operator; any text of at most 200 bytes without ":"
    uint64_t owner_bytes_max;  // of all that the owner has here, this included
    bool trainer = false;      // of a run, who is counted apart from workers
  };
  // Begins an upload, or goes on with it. It may read what is there (minutes, for a large one after
  // a restart). One at a time may hold it.
  // AlreadyExists: the artifact is here. OutOfRange: too large. ResourceExhausted: a quota, the
  // store or the disk is full. Unavailable: somebody holds it; or too many are under way.
  // InvalidArgument: begun with another size.
  absl::StatusOr<std::unique_ptr<Upload>> Resume(const Claim& claim);

  // Drops uploads that nothing came for; returns how many. To be called now and then.
  int Expire();

  // Whole ones that workers have brought, and for how long they have been here.
  std::vector<std::pair<Digest, absl::Duration>> OfWorkers() const;
  // An artifact that nobody needs any more. NotFound.
  absl::Status Remove(const Digest& digest);

  // Whole ones, and uploads at the size they are to have.
  uint64_t bytes() const;

 private:
  using Key = std::pair<Digest, std::string>;  // and owner
  struct Pending {
    uint64_t bytes = 0;
    std::optional<PartialFile> file = std::nullopt;  // open since the first use in this process
    bool held = false;
    absl::Time touched;
  };
  struct Whole {
    uint64_t bytes = 0;
    std::string owner;  // empty: nobody
    absl::Time since;
  };

  ArtifactStore(std::string folder, const ArtifactStoreOptions& options, DirectoryLock lock,
                std::shared_ptr<const Folder> artifacts)
      : folder_(std::move(folder)),
        options_(options),
        lock_(std::move(lock)),
        artifacts_(std::move(artifacts)) {}
  absl::Status Scan();
  absl::Status ScanArtifacts();
  absl::Status ScanUpload(const std::string& name);
  std::string ArtifactPath(const Digest& digest) const;
  std::string OwnerPath(const Digest& digest) const;
  std::string UploadPath(const Key& key, const char* suffix) const;
  absl::Status CheckRoom(const Claim& claim, const std::string& name) const;
  void Count(const std::string& owner, uint64_t bytes);
  void Uncount(const std::string& owner, uint64_t bytes);
  void Drop(const Key& key);
  void Release(const Key& key, PartialFile file);
  absl::Status Finish(const Key& key, PartialFile file);

  const std::string folder_;
  const ArtifactStoreOptions options_;
  const DirectoryLock lock_;
  const std::shared_ptr<const Folder> artifacts_;
  mutable std::mutex mutex_;  // over all that follows
  std::map<Key, Pending> pending_;
  std::map<Digest, Whole> whole_;
  std::map<std::string, uint64_t> owner_bytes_;
  uint64_t bytes_ = 0;
  uint64_t workers_bytes_ = 0;  // of those, workers'
};

// An upload that is held. Not for several threads at once; the store outlives it. Destroyed without
// Finish, it stays for another time.
class ArtifactStore::Upload {
 public:
  ~Upload();
  uint64_t offset() const { return file_->bytes(); }
  uint64_t bytes() const { return bytes_; }
  // Not beyond bytes(). ResourceExhausted: the disk is full; what fitted is counted.
  absl::Status Append(ByteSpan bytes);
  // Brings what came to the disk. After an error the upload is dropped.
  absl::Status Sync();
  // With offset() = bytes(): makes it an artifact. DataLoss if its digest is another: it is dropped
  // then. The last call.
  absl::Status Finish();

 private:
  friend class ArtifactStore;
  Upload(ArtifactStore& store, Key key, uint64_t bytes, PartialFile file)
      : store_(store), key_(std::move(key)), bytes_(bytes), file_(std::move(file)) {}
  ArtifactStore& store_;
  const Key key_;
  const uint64_t bytes_;
  std::optional<PartialFile> file_;  // until Finish, or an error of the disk
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_ARTIFACT_STORE_H_
