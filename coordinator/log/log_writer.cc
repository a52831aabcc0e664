// SPDX-License-Identifier: Apache-2.0
//
// Appending, and recovery. See log_writer.h.

#include "coordinator/log/log_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kEntryBytesMost = 65'535;
constexpr size_t kBundleBytesMax = audit::kTileWidth * (2 + kEntryBytesMost);
constexpr size_t kStageBytesMax = size_t{1} << 30;

absl::StatusOr<int> LockDirectory(const std::string& directory) {
  const std::string path = directory + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  ::close(fd);
  if (error != EWOULDBLOCK) return absl::ErrnoToStatus(error, absl::StrCat("lock ", path));
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is held: another process appends to this log; stop it first"));
}

absl::Status RefuseOldDatabase(uint64_t decided, uint64_t published) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the published checkpoint has ", published, " entries, checkpoint.sqlite only ", decided,
      ": it was restored from an old backup. Going on would sign a second history of the log;"
      " restore the newest checkpoint.sqlite"));
}

absl::Status RefuseOldFiles(uint64_t decided, uint64_t published) {
  return absl::FailedPreconditionError(absl::StrCat(
      "checkpoint.sqlite has ", decided, " entries, the public files ", published,
      ", and no stage leads from one to the other: the public files were removed, or restored from"
      " an old backup. Restore newer ones"));
}

}  // namespace

LogWriter::LogWriter(const LogOptions& options, const Ed25519PrivateKey& key, int lock)
    : directory_(options.directory),
      signer_(key),
      note_key_{.name = options.origin, .key = key.public_key()},
      lock_(lock),
      files_(PublicDirectory(options.directory)) {}

LogWriter::~LogWriter() {
  checkpoints_.reset();
  ::close(lock_);
}

std::string LogWriter::StagePath(const std::string& name) const {
  return absl::StrCat(directory_, "/stage/", name);
}

absl::StatusOr<std::unique_ptr<LogWriter>> LogWriter::Open(const LogOptions& options,
                                                           const Ed25519PrivateKey& key) {
  if (!audit::IsNoteKeyName(options.origin)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", options.origin, "\" cannot name a log: expected text without spaces or '+'"));
  }
  const std::string& directory = options.directory;
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(directory + "/stage"));
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(PublicDirectory(directory)));
  LOCKSTEP_RETURN_IF_ERROR(SyncDirectory(directory));
  LOCKSTEP_RETURN_IF_ERROR(SyncDirectory(directory + "/.."));
  LOCKSTEP_ASSIGN_OR_RETURN(const int lock, LockDirectory(directory));
  std::unique_ptr<LogWriter> log(new LogWriter(options, key, lock));
  LOCKSTEP_ASSIGN_OR_RETURN(log->checkpoints_,
                            CheckpointStore::Open(directory + "/checkpoint.sqlite"));
  LOCKSTEP_RETURN_IF_ERROR(log->Recover(), "log in ", directory);
  return log;
}

absl::Status LogWriter::Recover() {
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> note, checkpoints_->Load());
  const std::string path = files_.PathOf(audit::kLogCheckpointPath);
  absl::StatusOr<std::string> published = ReadFile(path, audit::kNoteBytesMax);
  if (!published.ok() && !absl::IsNotFound(published.status())) return published.status();

  if (!note.has_value()) {
    if (published.ok()) {
      LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogCheckpoint seen,
                                audit::OpenLogCheckpoint(*published, note_key_), path);
      return RefuseOldDatabase(0, seen.size);
    }
    note = audit::SignLogCheckpoint({.origin = note_key_.name, .size = 0, .root = MerkleRoot({})},
                                    signer_);
    LOCKSTEP_RETURN_IF_ERROR(checkpoints_->CompareAndSwap(std::nullopt, *note));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogCheckpoint decided,
                            audit::OpenLogCheckpoint(*note, note_key_), "checkpoint.sqlite");
  audit::LogCheckpoint seen = decided;
  if (published.ok()) {
    LOCKSTEP_ASSIGN_OR_RETURN(seen, audit::OpenLogCheckpoint(*published, note_key_), path);
  } else if (decided.size > 0) {
    return RefuseOldFiles(decided.size, 0);
  }
  if (seen.size > decided.size) return RefuseOldDatabase(decided.size, seen.size);
  if (seen.size == decided.size && seen.root != decided.root) {
    return absl::DataLossError(
        absl::StrCat("two roots are signed for ", seen.size, " entries: ", decided.root.ToHex(),
                     " in checkpoint.sqlite and ", seen.root.ToHex(), " in ", path));
  }
  LOCKSTEP_RETURN_IF_ERROR(FinishStage(decided, seen.size, *note));
  if (!published.ok()) {
    LOCKSTEP_RETURN_IF_ERROR(files_.Write({.path = audit::kLogCheckpointPath, .bytes = *note}));
  }
  LOCKSTEP_RETURN_IF_ERROR(DropStages());
  return LoadTree(decided, *note);
}

absl::Status LogWriter::FinishStage(const audit::LogCheckpoint& decided, uint64_t published_size,
                                    const std::string& note) {
  const std::string path = StagePath(StageName(decided.size, decided.root));
  const absl::StatusOr<std::string> bytes = ReadFile(path, kStageBytesMax);
  const bool behind = published_size < decided.size;
  if (absl::IsNotFound(bytes.status())) {
    return behind ? RefuseOldFiles(decided.size, published_size) : absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Stage stage, DecodeStage(AsBytes(*bytes)), path);
  if (stage.size != decided.size || stage.root != decided.root) {
    return absl::DataLossError(absl::StrCat(path, " is the stage of another checkpoint"));
  }
  if (behind && stage.size_before != published_size) {
    return RefuseOldFiles(decided.size, published_size);
  }
  LOCKSTEP_LOG_INFO("finishing the log's entries {} to {}, which a crash left", stage.size_before,
                    stage.size - 1);
  files_.RemoveRubbishBeside(stage.files);
  return Publish(stage, note);
}

absl::Status LogWriter::DropStages() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            ListDirectory(directory_ + "/stage"));
  for (const std::string& name : names) {
    if (::unlink(StagePath(name).c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("remove ", StagePath(name)));
    }
  }
  return absl::OkStatus();
}

absl::Status LogWriter::LoadTree(const audit::LogCheckpoint& decided, const std::string& note) {
  const absl::MutexLock lock(&mutex_);
  for (uint64_t i = 0; const std::optional<audit::LogTile> tile = audit::TileAt(0, i, decided.size);
       ++i) {
    const std::string path = files_.PathOf(audit::PathOf(*tile));
    const auto size = static_cast<size_t>(tile->width) * sizeof(Digest::bytes);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, size));
    if (bytes.size() != size) {
      return absl::DataLossError(
          absl::StrCat(path, " has ", bytes.size(), " bytes, expected ", size));
    }
    for (size_t at = 0; at < size; at += sizeof(Digest::bytes)) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          const Digest hash, Digest::FromBytes(AsBytes(bytes).subspan(at, sizeof(Digest::bytes))));
      tree_.Append(hash);
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(root_, tree_.Root(decided.size));
  if (root_ != decided.root) {
    return absl::DataLossError(absl::StrCat("the tiles of ", decided.size, " entries have root ",
                                            root_.ToHex(), ", but ", decided.root.ToHex(),
                                            " was signed: files are damaged; restore them"));
  }
  size_ = decided.size;
  note_ = note;
  return LoadLastBundle();
}

absl::Status LogWriter::LoadLastBundle() {
  const std::optional<audit::LogTile> tile =
      audit::TileAt(std::nullopt, size_ / audit::kTileWidth, size_);
  if (!tile.has_value()) return absl::OkStatus();
  const std::string path = files_.PathOf(audit::PathOf(*tile));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kBundleBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<absl::string_view> entries,
                            audit::ParseEntryBundle(bytes, tile->width), path);
  for (const absl::string_view entry : entries) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest hash,
                              tree_.SubtreeRoot(0, tile->first() + last_bundle_.size()));
    if (MerkleLeafHash(AsBytes(entry)) != hash) {
      return absl::DataLossError(absl::StrCat(path, ": entry ", last_bundle_.size(),
                                              " does not have the hash in the tiles"));
    }
    last_bundle_.emplace_back(entry);
  }
  return absl::OkStatus();
}

absl::Status LogWriter::Append(std::span<const std::string> entries) {
  for (const std::string& entry : entries) {
    if (entry.empty() || entry.size() > kEntryBytesMost) {
      return absl::InvalidArgumentError(
          absl::StrCat("an entry has ", entry.size(), " bytes, expected 1 to ", kEntryBytesMost));
    }
  }
  if (entries.empty()) return absl::InvalidArgumentError("no entries to append");
  if (!failure_.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the log is not written any more, after: ", failure_.message(), "; start anew"));
  }
  failure_ = AppendAll(entries);
  return failure_;
}

absl::Status LogWriter::AppendAll(std::span<const std::string> entries) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Stage stage, MakeStage(entries));
  const std::string note = audit::SignLogCheckpoint(
      {.origin = note_key_.name, .size = stage.size, .root = stage.root}, signer_);
  const std::string path = StagePath(StageName(stage.size, stage.root));
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(path, AsBytes(EncodeStage(stage))));
  LOCKSTEP_RETURN_IF_ERROR(checkpoints_->CompareAndSwap(Checkpoint(), note));
  LOCKSTEP_RETURN_IF_ERROR(Publish(stage, note));
  if (::unlink(path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("remove ", path));
  }
  const uint64_t bundle = stage.size / audit::kTileWidth * audit::kTileWidth;
  if (bundle > stage.size_before) last_bundle_.clear();
  const uint64_t kept = std::min<uint64_t>(stage.size - bundle, entries.size());
  last_bundle_.insert(last_bundle_.end(), entries.end() - static_cast<ptrdiff_t>(kept),
                      entries.end());
  const absl::MutexLock lock(&mutex_);
  size_ = stage.size;
  root_ = stage.root;
  note_ = note;
  return absl::OkStatus();
}

absl::StatusOr<Stage> LogWriter::MakeStage(std::span<const std::string> entries) {
  const absl::MutexLock lock(&mutex_);
  for (const std::string& entry : entries) tree_.Append(MerkleLeafHash(AsBytes(entry)));
  Stage stage{.size_before = size_, .size = tree_.size(), .root = {}, .files = {}};
  LOCKSTEP_ASSIGN_OR_RETURN(stage.root, tree_.Root(stage.size));
  for (const audit::LogTile& tile : audit::NewTiles(stage.size_before, stage.size)) {
    LogFile file{.path = audit::PathOf(tile), .bytes = {}};
    if (tile.level.has_value()) {
      LOCKSTEP_ASSIGN_OR_RETURN(file.bytes, audit::HashTileBytes(tree_, tile));
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(file.bytes, BundleBytes(tile, stage.size_before, entries));
    }
    stage.files.push_back(std::move(file));
  }
  return stage;
}

absl::StatusOr<std::string> LogWriter::BundleBytes(const audit::LogTile& bundle, uint64_t size,
                                                   std::span<const std::string> entries) const {
  std::vector<std::string> all;
  if (bundle.first() < size) all = last_bundle_;
  const uint64_t from = bundle.first() + all.size() - size;
  const std::span<const std::string> more =
      entries.subspan(from, static_cast<size_t>(bundle.width) - all.size());
  all.insert(all.end(), more.begin(), more.end());
  return audit::EncodeEntryBundle(all);
}

absl::Status LogWriter::Publish(const Stage& stage, const std::string& note) {
  for (const LogFile& file : stage.files) LOCKSTEP_RETURN_IF_ERROR(files_.Write(file));
  LOCKSTEP_RETURN_IF_ERROR(files_.Write({.path = audit::kLogCheckpointPath, .bytes = note}));
  files_.RemovePartialsOf(stage.files);
  return absl::OkStatus();
}

uint64_t LogWriter::size() const {
  const absl::ReaderMutexLock lock(&mutex_);
  return size_;
}

Digest LogWriter::Root() const {
  const absl::ReaderMutexLock lock(&mutex_);
  return root_;
}

std::string LogWriter::Checkpoint() const {
  const absl::ReaderMutexLock lock(&mutex_);
  return note_;
}

absl::Status LogWriter::CheckPublished(uint64_t size) const {
  if (size <= size_) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("the log has ", size_, " entries, not ", size));
}

absl::StatusOr<audit::LogProof> LogWriter::Receipt(uint64_t index) const {
  const absl::ReaderMutexLock lock(&mutex_);
  audit::LogProof proof;
  proof.index = index;
  LOCKSTEP_ASSIGN_OR_RETURN(proof.hashes, tree_.InclusionProof(index, size_));
  proof.checkpoint = note_;
  return proof;
}

absl::StatusOr<std::vector<Digest>> LogWriter::InclusionProof(uint64_t index, uint64_t size) const {
  const absl::ReaderMutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckPublished(size));
  return tree_.InclusionProof(index, size);
}

absl::StatusOr<std::vector<Digest>> LogWriter::ConsistencyProof(uint64_t old_size,
                                                                uint64_t new_size) const {
  const absl::ReaderMutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckPublished(new_size));
  return tree_.ConsistencyProof(old_size, new_size);
}

}  // namespace lockstep::coordinator
