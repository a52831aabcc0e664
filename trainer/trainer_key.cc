// SPDX-License-Identifier: Apache-2.0
//
// See trainer_key.h.
#include "trainer/trainer_key.h"

#include <cstdlib>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep::trainer {

absl::StatusOr<std::string> DefaultTrainerKeyPath() {
  const auto folder = [](const char* variable) -> std::string {
    const char* const value = std::getenv(variable);
    // The XDG specification has relative paths passed over.
    return value != nullptr && value[0] == '/' ? value : "";
  };
  std::string config = folder("XDG_CONFIG_HOME");
  if (config.empty()) {
    const std::string home = folder("HOME");
    if (home.empty()) {
      return absl::FailedPreconditionError(
          "no HOME to keep the trainer's key in: name a file with --trainer-key");
    }
    config = home + "/.config";
  }
  return config + "/lockstep/trainer.key";
}

absl::StatusOr<Ed25519PrivateKey> LoadOrCreateTrainerKey(const std::string& path) {
  absl::StatusOr<Ed25519PrivateKey> key = Ed25519PrivateKey::Load(path);
  if (!absl::IsNotFound(key.status())) return key;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder));
  LOCKSTEP_ASSIGN_OR_RETURN(Ed25519PrivateKey made, Ed25519PrivateKey::Create(path));
  LOCKSTEP_LOG_INFO("made a new trainer's key, {}: keep it, the run's steps are signed with it",
                    path);
  return made;
}

}  // namespace lockstep::trainer
