// SPDX-License-Identifier: Apache-2.0
//
// The append-only log of one coordinator: entries in, signed checkpoints and tiles
// (c2sp.org/tlog-tiles) out, on the disk. One writer; the files beneath PublicDirectory are what
// the HTTP server hands out as they are. README.md has the life of an entry. In one directory:
//
//   lock               held by the process that appends
//   checkpoint.sqlite  the newest signed checkpoint: what decides
//   stage/             files of a checkpoint that is not yet published in full
//   public/            checkpoint, tile/...
//
// An Append goes: stage on the disk; compare and swap of the checkpoint; tiles on the disk;
// public/checkpoint on the disk; stage dropped. After a failure at any place nothing is written any
// more, since it is not known what the disk has: the next Open decides, by the same code. It ends
// as if Append had been done in whole, or not been called.

#ifndef LOCKSTEP_COORDINATOR_LOG_LOG_WRITER_H_
#define LOCKSTEP_COORDINATOR_LOG_LOG_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/log_proof.h"
#include "audit/log/log_tiles.h"
#include "base/ed25519.h"
#include "base/merkle.h"
#include "coordinator/log/checkpoint_store.h"
#include "coordinator/log/log_files.h"
#include "coordinator/log/stage.h"

namespace lockstep::coordinator {

struct LogOptions {
  std::string directory;  // made if it is not there
  std::string origin;     // the log's name, also of its key: audit::IsNoteKeyName
};

class LogWriter {
 public:
  // Opens the log, or begins one, and finishes what a crash left. `key` outlives it.
  //
  // FailedPrecondition if another process has the log; if checkpoint.sqlite is older than the
  // published checkpoint (restored from a backup: going on would sign a second history); or if the
  // public files are older than a crash can leave them. PermissionDenied if the log is another
  // key's or origin's. DataLoss if the files do not have the root that was signed.
  static absl::StatusOr<std::unique_ptr<LogWriter>> Open(const LogOptions& options,
                                                         const Ed25519PrivateKey& key);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Appends entries of 1 to 65,535 bytes, at least one; published and on the disk when OK.
  // InvalidArgument, and nothing has happened, for others; any other error ends the writing, and
  // every later call gives FailedPrecondition. One thread at a time.
  absl::Status Append(std::span<const std::string> entries);

  // The rest from any thread, of what is published.
  uint64_t size() const;
  Digest Root() const;
  // The signed note.
  std::string Checkpoint() const;
  // That entry `index` is in the log, under the newest checkpoint. OutOfRange if it is not.
  absl::StatusOr<audit::LogProof> Receipt(uint64_t index) const;
  // As MerkleTree's, of sizes up to size().
  absl::StatusOr<std::vector<Digest>> InclusionProof(uint64_t index, uint64_t size) const;
  absl::StatusOr<std::vector<Digest>> ConsistencyProof(uint64_t old_size, uint64_t new_size) const;

  const audit::NoteKey& key() const { return note_key_; }
  static std::string PublicDirectory(const std::string& directory) { return directory + "/public"; }

 private:
  LogWriter(const LogOptions& options, const Ed25519PrivateKey& key, int lock);

  absl::Status Recover();
  absl::Status FinishStage(const audit::LogCheckpoint& decided, uint64_t published_size,
                           const std::string& note);
  absl::Status DropStages();
  absl::Status LoadTree(const audit::LogCheckpoint& decided, const std::string& note);
  absl::Status LoadLastBundle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status AppendAll(std::span<const std::string> entries);
  absl::StatusOr<Stage> MakeStage(std::span<const std::string> entries);
  // Of a log that had `size` entries and then `entries`.
  absl::StatusOr<std::string> BundleBytes(const audit::LogTile& bundle, uint64_t size,
                                          std::span<const std::string> entries) const;
  // From the stage to the public files, for Append and Recover alike.
  absl::Status Publish(const Stage& stage, const std::string& note);
  absl::Status CheckPublished(uint64_t size) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::string StagePath(const std::string& name) const;

  const std::string directory_;
  const Ed25519PrivateKey& signer_;
  const audit::NoteKey note_key_;
  const int lock_;  // descriptor
  std::unique_ptr<CheckpointStore> checkpoints_;
  LogFiles files_;
  absl::Status failure_;
  std::vector<std::string> last_bundle_;  // entries of the partial bundle at the right edge

  mutable absl::Mutex mutex_;
  MerkleTree tree_ ABSL_GUARDED_BY(mutex_);  // perhaps with leaves not yet published
  uint64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  Digest root_ ABSL_GUARDED_BY(mutex_);
  std::string note_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_LOG_LOG_WRITER_H_
