// SPDX-License-Identifier: Apache-2.0
//
// Names and files of a run folder.
#include "engine/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/bytes.h"
#include "base/canonical_json.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

constexpr size_t kManifestBytesMax = size_t{1} << 20;
constexpr size_t kLeavesBytesMax = size_t{1} << 30;
constexpr size_t kPathBytesMax = 4096;
constexpr size_t kPlacesMax = 64;

std::string EncodePlaces(const RunPlaces& places) {
  nlohmann::json json = {{"corpus", places.corpus}, {"tokenizer", places.tokenizer}};
  if (!places.parent.empty()) json["parent"] = places.parent;
  return json.dump(2) + "\n";
}

absl::StatusOr<RunPlaces> ParsePlaces(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  RunPlaces places;
  const auto bad = [](absl::string_view expected) {
    return absl::DataLossError(absl::StrCat("expected ", expected));
  };
  if (!json.is_object()) return bad("a JSON object");
  const auto corpus = json.find("corpus");
  if (corpus == json.end() || !corpus->is_array() || corpus->size() > kPlacesMax) {
    return bad("\"corpus\", a list of folders or addresses");
  }
  for (const auto& place : *corpus) {
    if (!place.is_string()) return bad("\"corpus\", a list of folders or addresses");
    places.corpus.push_back(place.get<std::string>());
  }
  for (const auto& [key, to] :
       {std::pair{"tokenizer", &places.tokenizer}, std::pair{"parent", &places.parent}}) {
    const auto value = json.find(key);
    if (value == json.end()) continue;
    if (!value->is_string() || value->get_ref<const std::string&>().size() > kPathBytesMax) {
      return bad(absl::StrCat("\"", key, "\" to be a path"));
    }
    *to = value->get<std::string>();
  }
  return places;
}

std::string StepName(uint64_t step) { return absl::StrFormat("%08d", step); }

// nullopt for a name that StepName does not give.
std::optional<uint64_t> StepOfName(const std::string& name) {
  uint64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || StepName(step) != name) {
    return std::nullopt;
  }
  return step;
}

}  // namespace

absl::StatusOr<RunFolder> RunFolder::Create(const std::string& path,
                                            const audit::RunManifest& manifest,
                                            const RunPlaces& places) {
  LOCKSTEP_RETURN_IF_ERROR(audit::ValidateRunManifest(manifest));
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  if (!names.empty()) {
    return absl::AlreadyExistsError(absl::StrCat(path,
                                                 ": expected no folder or an empty one for a "
                                                 "new run; found \"",
                                                 names[0], "\" in it"));
  }
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(path + "/checkpoints"));
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(path + "/leaves"));
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(path + "/places.json", AsBytes(EncodePlaces(places))));
  // Last, since it makes the folder a run.
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(path + "/run.json", AsBytes(audit::EncodeRunManifest(manifest))));
  return Open(path);
}

absl::StatusOr<RunFolder> RunFolder::Open(const std::string& path) {
  RunFolder folder;
  folder.path_ = path;
  const std::string manifest_path = path + "/run.json";
  const absl::StatusOr<std::string> text = ReadFile(manifest_path, kManifestBytesMax);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat(path, " is no run: expected run.json in it; `lockstep run init` makes one"));
  }
  LOCKSTEP_RETURN_IF_ERROR(text.status());
  LOCKSTEP_ASSIGN_OR_RETURN(folder.manifest_, audit::ParseRunManifest(*text), manifest_path);
  folder.run_id_ = Sha256(AsBytes(*text));
  const std::string places_path = path + "/places.json";
  const absl::StatusOr<std::string> places = ReadFile(places_path, kManifestBytesMax);
  if (places.ok()) {
    LOCKSTEP_ASSIGN_OR_RETURN(folder.places_, ParsePlaces(*places), places_path);
  } else if (!absl::IsNotFound(places.status())) {
    return places.status();
  }
  return folder;
}

std::string RunFolder::CheckpointPath(uint64_t step) const {
  return absl::StrCat(path_, "/checkpoints/", StepName(step));
}
std::string RunFolder::LeavesPath(uint64_t step) const {
  return absl::StrCat(path_, "/leaves/", StepName(step));
}

absl::StatusOr<std::vector<uint64_t>> RunFolder::Checkpoints() const {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(path_ + "/checkpoints");
  if (absl::IsNotFound(names.status())) return std::vector<uint64_t>();
  LOCKSTEP_RETURN_IF_ERROR(names.status());
  std::vector<uint64_t> steps;
  for (const std::string& name : *names) {
    if (const std::optional<uint64_t> step = StepOfName(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::Status RunFolder::WriteLeaves(const audit::StepLeaves& leaves) const {
  // Not brought to the disk: a replay does without those that a power cut loses.
  const std::string path = LeavesPath(leaves.step);
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(path_ + "/leaves"));
  return WriteFileAtOnce(path, AsBytes(audit::EncodeStepLeaves(leaves)));
}

absl::StatusOr<audit::StepLeaves> RunFolder::ReadLeaves(uint64_t step) const {
  const std::string path = LeavesPath(step);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kLeavesBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(audit::StepLeaves leaves, audit::DecodeStepLeaves(AsBytes(bytes)),
                            path);
  return leaves;
}

absl::Status RunFolder::RemoveLeaves(uint64_t step) const {
  const std::string path = LeavesPath(step);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("remove ", path));
}

absl::StatusOr<RunLock> RunLock::Acquire(const RunFolder& folder) {
  const std::string path = folder.path() + "/.lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  RunLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder.path(), ": another process is at work on this run"));
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("lock ", path));
}

RunLock::~RunLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace lockstep::engine
