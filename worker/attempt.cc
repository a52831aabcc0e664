// SPDX-License-Identifier: Apache-2.0
//
// Where an attempt is, and keeping its id.
#include "worker/attempt.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "worker/grpc_coordinator.h"

namespace lockstep::worker {
namespace {

constexpr size_t kIdBytes = 16;
constexpr size_t kPlaceBytes = 32;

std::string FirstWord(const char* path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

std::string ThisMachine() {
  return absl::StrCat(FirstWord("/etc/machine-id"), " ",
                      FirstWord("/proc/sys/kernel/random/boot_id"));
}

absl::StatusOr<std::string> CurrentAttempt(const std::string& folder, const std::string& machine) {
  struct stat place {};
  if (::stat(folder.c_str(), &place) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("look at ", folder));
  }
  const Digest here = Sha256(AsBytes(absl::StrCat(machine, " ", place.st_dev, " ", place.st_ino)));
  const std::string path = folder + "/attempt";
  const absl::StatusOr<std::string> kept = ReadFile(path, kIdBytes + kPlaceBytes);
  if (kept.ok() && kept->size() == kIdBytes + kPlaceBytes &&
      absl::string_view(*kept).substr(kIdBytes) == AsChars(here.bytes)) {
    return kept->substr(0, kIdBytes);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string id, RandomId());
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(path, AsBytes(absl::StrCat(id, AsChars(here.bytes))), 0600));
  return id;
}

}  // namespace lockstep::worker
