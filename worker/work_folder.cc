// SPDX-License-Identifier: Apache-2.0
//
// Making and clearing the folder.
#include "worker/work_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/status.h"
#include "net/artifact_fetch.h"

namespace lockstep::worker {
namespace {

std::string RunPath(const std::string& root, const Digest& run_id) {
  return absl::StrCat(root, "/runs/", run_id.ToHex());
}

}  // namespace

absl::StatusOr<WorkFolder> WorkFolder::Open(const std::string& root, const WorkLease& lease) {
  const std::string path = RunPath(root, lease.run_id);
  absl::StatusOr<engine::RunFolder> run = engine::RunFolder::Open(path);
  if (!run.ok() || run->run_id() != lease.run_id) {
    LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(path));
    run = engine::RunFolder::Create(path, lease.registration.manifest, {});
  }
  LOCKSTEP_RETURN_IF_ERROR(run.status());
  WorkFolder folder(*std::move(run));
  // What a kill left of an earlier replay.
  LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(folder.spill_folder()));
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder.spill_folder()));
  return folder;
}

engine::CorpusLocation WorkFolder::Corpus(const std::vector<std::string>& mirrors,
                                          const net::HttpOptions& http) const {
  return {.places = mirrors,
          .manifest = run_.manifest().corpus,
          .cache = run_.path() + "/corpus",
          .names = engine::MirrorNames::kDigests,
          .http = http};
}

absl::StatusOr<engine::StartPoint> WorkFolder::FetchStart(
    const WorkLease& lease, uint64_t next, net::ArtifactCache& cache, net::HttpClient& client,
    const std::vector<std::string>& mirrors) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, run_.Checkpoints());
  std::optional<uint64_t> best;
  for (const uint64_t step : steps) {
    if (step >= lease.start_step && step <= next) best = step;
  }
  if (best) return engine::StartPoint{.step = *best, .checkpoint = run_.CheckpointPath(*best)};
  if (lease.start_files.empty()) return engine::StartPoint{};

  std::vector<net::ArtifactCache::Pin> pins;
  for (const LeaseFile& file : lease.start_files) {
    net::FetchOptions options;
    options.mirrors = file.mirrors;
    options.mirrors.insert(options.mirrors.end(), mirrors.begin(), mirrors.end());
    LOCKSTEP_ASSIGN_OR_RETURN(net::ArtifactCache::Pin pin,
                              cache.Get(file.sha256, file.bytes,
                                        [&](const std::string& path) {
                                          return net::FetchArtifact(
                                              client, options,
                                              {.sha256 = file.sha256, .bytes = file.bytes}, path);
                                        }),
                              file.name);
    pins.push_back(std::move(pin));
  }
  const std::string path = run_.CheckpointPath(lease.start_step);
  LOCKSTEP_ASSIGN_OR_RETURN(DurableDirectory folder, DurableDirectory::Create(path));
  for (size_t i = 0; i < pins.size(); ++i) {
    const std::string to = absl::StrCat(folder.temporary(), "/", lease.start_files[i].name);
    if (::link(pins[i].path().c_str(), to.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("link ", pins[i].path(), " as ", to));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(folder.Commit());
  return engine::StartPoint{.step = lease.start_step, .checkpoint = path};
}

absl::Status WorkFolder::DropStates(uint64_t keep) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, run_.Checkpoints());
  for (const uint64_t step : steps) {
    if (step != keep) LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(run_.CheckpointPath(step)));
  }
  return absl::OkStatus();
}

absl::Status WorkFolder::DropOtherRuns(const std::string& root) const {
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(root + "/runs");
  LOCKSTEP_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (name == run_.run_id().ToHex()) continue;
    LOCKSTEP_RETURN_IF_ERROR(RemoveDirectory(absl::StrCat(root, "/runs/", name)));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
