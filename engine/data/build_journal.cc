// SPDX-License-Identifier: Apache-2.0
//
// The journal of a corpus build. See build_journal.h.
#include "engine/data/build_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/coding.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = ".build";
constexpr size_t kRecordBytesMax = 1 << 20;
constexpr absl::string_view kRecordMagic = "LSBUILD1";

// A folder whose name is on the disk when it is returned from.
absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("create folder ", folder.string()));
  }
  const fs::path parent = fs::absolute(folder, error).parent_path();
  const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int reason = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) return absl::ErrnoToStatus(reason, absl::StrCat("fsync ", parent.string()));
  return absl::OkStatus();
}

// What a process that was killed left half-written. Only the lock's holder may.
void RemoveTemporaryFiles(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (absl::StartsWith(name, ".lockstep-") && absl::EndsWith(name, ".tmp")) {
      std::error_code ignored;
      fs::remove(at->path(), ignored);
    }
  }
}

std::string FolderOf(const std::string& out) { return absl::StrCat(out, "/", kFolder); }

std::string RecordPath(const std::string& out, const std::string& source, uint64_t number) {
  return absl::StrCat(FolderOf(out), "/", source, ".", number);
}

// Gone with the process, however it ends.
absl::StatusOr<int> TakeLock(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return absl::FailedPreconditionError(
      absl::StrCat("another process builds here: it holds ", path));
}

absl::Status CheckPlan(const std::string& out, const std::string& plan) {
  const std::string path = absl::StrCat(FolderOf(out), "/plan.json");
  const absl::StatusOr<std::string> found = ReadFile(path, kCorpusManifestBytesMax);
  if (absl::IsNotFound(found.status())) return WriteFileDurably(path, AsBytes(plan));
  LOCKSTEP_RETURN_IF_ERROR(found.status());
  if (*found == plan) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(out,
                   " holds an unfinished build of other inputs or options; go on with those, "
                   "remove it, or choose another folder"));
}

std::string Encode(const FinishedShard& shard) {
  ByteWriter writer;
  writer.WriteFixed(AsBytes(kRecordMagic));
  writer.WriteI64(shard.end.part);
  writer.WriteU64(shard.end.document);
  writer.WriteU64(shard.end.text_bytes);
  writer.WriteLengthPrefixed(AsBytes(SerializeShardEntry(shard.shard)));
  return writer.Take();
}

absl::StatusOr<FinishedShard> Decode(const std::string& bytes, uint32_t token_bytes,
                                     uint64_t chunk_bytes) {
  ByteReader reader(AsBytes(bytes));
  FinishedShard finished;
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan magic, reader.ReadFixed("magic", kRecordMagic.size()));
  if (AsChars(magic) != kRecordMagic) return absl::DataLossError("not the record of a shard");
  LOCKSTEP_ASSIGN_OR_RETURN(finished.end.part, reader.ReadI64("part"));
  LOCKSTEP_ASSIGN_OR_RETURN(finished.end.document, reader.ReadU64("document"));
  LOCKSTEP_ASSIGN_OR_RETURN(finished.end.text_bytes, reader.ReadU64("text bytes"));
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan shard,
                            reader.ReadLengthPrefixed("shard", kRecordBytesMax));
  LOCKSTEP_RETURN_IF_ERROR(reader.ExpectEnd());
  LOCKSTEP_ASSIGN_OR_RETURN(finished.shard,
                            ParseShardEntry(AsChars(shard), token_bytes, chunk_bytes));
  return finished;
}

}  // namespace

bool BuildJournal::IsIn(const std::string& out) {
  std::error_code error;
  return fs::exists(FolderOf(out), error);
}

absl::StatusOr<BuildJournal> BuildJournal::Open(const std::string& out, const std::string& plan,
                                                const std::vector<std::string>& sources) {
  LOCKSTEP_RETURN_IF_ERROR(MakeFolder(out));
  LOCKSTEP_RETURN_IF_ERROR(MakeFolder(FolderOf(out)));
  LOCKSTEP_ASSIGN_OR_RETURN(const int lock, TakeLock(absl::StrCat(FolderOf(out), "/lock")));
  BuildJournal journal(out, lock);
  RemoveTemporaryFiles(out);
  RemoveTemporaryFiles(FolderOf(out));
  for (const std::string& source : sources) {
    const std::string folder = absl::StrCat(out, "/", source);
    LOCKSTEP_RETURN_IF_ERROR(MakeFolder(folder));
    RemoveTemporaryFiles(folder);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckPlan(out, plan));
  return journal;
}

BuildJournal::BuildJournal(BuildJournal&& other) noexcept
    : out_(std::move(other.out_)), lock_(std::exchange(other.lock_, -1)) {}

BuildJournal::~BuildJournal() {
  if (lock_ >= 0) ::close(lock_);
}

absl::StatusOr<std::vector<FinishedShard>> BuildJournal::Read(const std::string& source,
                                                              uint32_t token_bytes,
                                                              uint64_t chunk_bytes) const {
  std::vector<FinishedShard> shards;
  while (true) {
    const std::string path = RecordPath(out_, source, shards.size());
    const absl::StatusOr<std::string> bytes = ReadFile(path, kRecordBytesMax);
    if (absl::IsNotFound(bytes.status())) return shards;
    LOCKSTEP_RETURN_IF_ERROR(bytes.status());
    const absl::StatusOr<FinishedShard> shard = Decode(*bytes, token_bytes, chunk_bytes);
    if (!shard.ok() || shard->end.part < (shards.empty() ? 0 : shards.back().end.part)) {
      return absl::DataLossError(absl::StrCat(path, ": not a record of this build (",
                                              shard.status().message(), "); remove ", out_,
                                              " and build anew"));
    }
    shards.push_back(*shard);
  }
}

absl::Status BuildJournal::Append(const std::string& source, uint64_t number,
                                  const FinishedShard& shard) {
  return WriteFileDurably(RecordPath(out_, source, number), AsBytes(Encode(shard)));
}

absl::Status BuildJournal::Remove() {
  std::error_code error;
  fs::remove_all(FolderOf(out_), error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("remove ", FolderOf(out_)));
  return absl::OkStatus();
}

}  // namespace lockstep::engine
