// SPDX-License-Identifier: Apache-2.0
//
// Which file is where.
#include "trainer/run_artifacts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "audit/checkpoint_manifest.h"
#include "audit/step_log.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/partial_file.h"
#include "base/status.h"
#include "engine/data/http_range_source.h"
#include "engine/data/manifest.h"
#include "engine/data/open_corpus.h"

namespace lockstep::trainer {
namespace {

constexpr size_t kCopyBytes = size_t{1} << 20;

// The path of a corpus file in the first folder that has it; empty if none has.
std::string FindInFolders(const std::vector<std::string>& places, const std::string& name) {
  for (const std::string& place : places) {
    if (engine::IsHttpAddress(place)) continue;
    std::string path = absl::StrCat(place, "/", name);
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path;
  }
  return "";
}

absl::StatusOr<RunArtifact> TokenizerArtifact(const engine::RunFolder& run) {
  const std::string& path = run.places().tokenizer;
  if (path.empty()) {
    return absl::NotFoundError(
        absl::StrCat(run.path(), "/places.json: expected where the tokenizer lies"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t bytes, FileBytes(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest digest, FileDigest(path, [](int64_t) {}));
  if (digest != run.manifest().tokenizer) {
    return absl::DataLossError(absl::StrCat(path, ": expected the run's tokenizer ",
                                            run.manifest().tokenizer.ToHex(), "; found ",
                                            digest.ToHex()));
  }
  return RunArtifact{.sha256 = digest,
                     .bytes = static_cast<uint64_t>(bytes),
                     .name = std::filesystem::path(path).filename().string(),
                     .path = path};
}

}  // namespace

absl::StatusOr<std::vector<RunArtifact>> InputArtifacts(const engine::RunFolder& run) {
  std::vector<RunArtifact> artifacts;
  LOCKSTEP_ASSIGN_OR_RETURN(artifacts.emplace_back(), TokenizerArtifact(run));
  const std::vector<std::string>& places = run.places().corpus;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::shared_ptr<const engine::CorpusReader> corpus,
      engine::OpenCorpus({.places = places, .manifest = run.manifest().corpus}), "corpus");
  const engine::CorpusManifest& manifest = corpus->manifest();
  artifacts.push_back({.sha256 = run.manifest().corpus,
                       .bytes = engine::SerializeManifest(manifest).size(),
                       .name = engine::kCorpusManifestFile,
                       .path = FindInFolders(places, engine::kCorpusManifestFile)});
  for (const engine::SourceEntry& source : manifest.sources) {
    for (size_t shard = 0; shard < source.shards.size(); ++shard) {
      for (const engine::ShardFile which : engine::kShardFiles) {
        const engine::FileEntry& entry = source.shards[shard].file(which);
        const std::string name = engine::ShardFileName(source.name, shard, which);
        artifacts.push_back({.sha256 = entry.sha256,
                             .bytes = entry.bytes,
                             .name = std::filesystem::path(name).filename().string(),
                             .path = FindInFolders(places, name)});
      }
    }
  }
  return artifacts;
}

absl::StatusOr<CheckpointArtifacts> ReadCheckpoint(const engine::RunFolder& run,
                                                   const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", audit::kCheckpointManifestFile);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, audit::kCheckpointManifestBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            audit::ParseCheckpointManifest(text), path);
  LOCKSTEP_RETURN_IF_ERROR(audit::CheckpointIsOfRun(manifest, run.manifest()), path);
  CheckpointArtifacts checkpoint;
  checkpoint.announcement = {.run_id = run.run_id(),
                             .next_step = manifest.next_step(),
                             .chain = manifest.chain(),
                             .manifest = Sha256(AsBytes(text)),
                             .files = manifest.files};
  checkpoint.files.push_back({.sha256 = checkpoint.announcement.manifest,
                              .bytes = text.size(),
                              .name = audit::kCheckpointManifestFile,
                              .path = path});
  for (const audit::CheckpointFile& file : manifest.files) {
    checkpoint.files.push_back({.sha256 = file.sha256,
                                .bytes = static_cast<uint64_t>(file.bytes),
                                .name = file.name,
                                .path = absl::StrCat(folder, "/", file.name)});
  }
  return checkpoint;
}

absl::StatusOr<std::vector<CheckpointPlace>> CheckpointPlaces(const engine::RunFolder& run) {
  std::vector<CheckpointPlace> places;
  const std::optional<audit::ParentSegment>& parent = run.manifest().parent;
  if (parent && !run.places().parent.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder folder,
                              engine::RunFolder::Open(run.places().parent));
    const auto step = static_cast<uint64_t>(parent->step);
    places.push_back({.step = step, .folder = folder.CheckpointPath(step)});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, run.Checkpoints());
  for (const uint64_t step : steps) {
    if (!places.empty() && places.front().step == step) continue;
    places.push_back({.step = step, .folder = run.CheckpointPath(step)});
  }
  return places;
}

absl::StatusOr<std::optional<audit::Genesis>> ReadGenesis(const engine::RunFolder& run) {
  const std::string path = absl::StrCat(run.CheckpointPath(0), "/", audit::kCheckpointManifestFile);
  const absl::StatusOr<std::string> text = ReadFile(path, audit::kCheckpointManifestBytesMax);
  if (absl::IsNotFound(text.status())) {
    const absl::StatusOr<int64_t> log_bytes = FileBytes(run.StepLogPath());
    if (!log_bytes.ok() || *log_bytes == 0) {
      return std::optional<audit::Genesis>();
    }
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": expected the state before step 0, whose roots the run is registered "
                     "with; it is no longer there, so this run cannot be registered any "
                     "more: register while it is, or keep it (--keep-checkpoints -1)"));
  }
  LOCKSTEP_RETURN_IF_ERROR(text.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            audit::ParseCheckpointManifest(*text), path);
  if (manifest.run_id != run.run_id() || manifest.record() != nullptr) {
    return absl::DataLossError(absl::StrCat(path, ": expected this run's state before step 0"));
  }
  const audit::InitialState roots = manifest.roots();
  return std::optional<audit::Genesis>({.parameters = roots.parameters,
                                        .first_moment = roots.first_moment,
                                        .second_moment = roots.second_moment,
                                        .cursor = Sha256(AsBytes(manifest.cursor))});
}

absl::StatusOr<bool> CopyToMirror(const RunArtifact& artifact, const std::string& folder,
                                  absl::FunctionRef<void(int64_t bytes)> copied) {
  const std::string path = absl::StrCat(folder, "/artifact/", artifact.sha256.ToHex());
  if (const absl::StatusOr<int64_t> there = FileBytes(path);
      there.ok() && static_cast<uint64_t>(*there) == artifact.bytes) {
    return false;
  }
  if (artifact.path.empty()) {
    return absl::NotFoundError(absl::StrCat(artifact.name, " ", artifact.sha256.ToHex(),
                                            " is not on this machine; copy it from where the "
                                            "run's places.json says it is"));
  }
  const int fd = ::open(artifact.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", artifact.path));
  const auto close = absl::MakeCleanup([fd] { ::close(fd); });
  LOCKSTEP_ASSIGN_OR_RETURN(PartialFile file, PartialFile::Open(path + ".partial", artifact.bytes));
  std::vector<uint8_t> buffer(kCopyBytes);
  while (true) {
    const ssize_t count =
        ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(file.bytes()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat("read ", artifact.path));
    if (count == 0) break;
    LOCKSTEP_RETURN_IF_ERROR(file.Append(ByteSpan(buffer.data(), static_cast<size_t>(count))));
    copied(count);
  }
  if (const Digest found = file.FinishDigest(); found != artifact.sha256) {
    file.Remove();
    return absl::DataLossError(absl::StrCat(artifact.path, ": the run says SHA-256 ",
                                            artifact.sha256.ToHex(), "; found ", found.ToHex(),
                                            ": the file has changed or is damaged"));
  }
  LOCKSTEP_RETURN_IF_ERROR(file.Commit(path));
  return true;
}

}  // namespace lockstep::trainer
