// SPDX-License-Identifier: Apache-2.0
//
// What the daemon is told: flags, over the environment, over the user's file, over the system's,
// over defaults. One list of settings is behind all four, so that each has each. No secrets: keys
// are files (keys.h).
//
//   flag  --idle-minutes 10      environment  LOCKSTEP_WORKER_IDLE_MINUTES=10
//   file  idle_minutes = 10      in $XDG_CONFIG_HOME/lockstep/worker.toml,
//   /etc/lockstep/worker.toml
#ifndef LOCKSTEP_WORKER_CONFIG_H_
#define LOCKSTEP_WORKER_CONFIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/guest_rules.h"

namespace lockstep::worker {

struct WorkerConfig {
  std::vector<std::string> coordinators;  // "https://host:port"; asked in turn
  std::vector<std::string> mirrors;       // more base URLs of artifacts: BASE/artifact/<sha256>
  std::string ca_file;                    // certificates to trust, PEM; empty: the system's
  std::string data_folder;                // keys, outbox, receipts, the lease at hand
  std::string cache_folder;               // artifacts, run folders: may be lost at any time
  std::string runtime_folder;             // the control socket
  int threads = 0;                        // 0: as many as there are CPUs
  uint64_t memory_bytes = 0;              // that a replay may take; 0: nine tenths of what is free
  uint64_t disk_bytes = uint64_t{50} << 30;  // of the cache folder's artifacts
  uint64_t bytes_per_second = 0;             // of fetches and uploads together; 0: no cap
  uint32_t steps_max = 0;                    // in a lease; 0: as the coordinator likes
  bool offer_states = false;                 // upload the state at a lease's end
  absl::Duration checkpoint_every = absl::Minutes(10);  // local, so that a kill loses no more
  absl::Duration release_after = absl::Minutes(30);  // a pause as long as this gives the lease up
  GuestOptions guest;
};

// Texts of settings by name ("idle_minutes"); a list has several.
using Settings = std::map<std::string, std::vector<std::string>>;

struct Setting {
  std::string name;
  bool list = false;
  std::string help;
  // InvalidArgument says what was expected. `values` is not empty.
  std::function<absl::Status(const std::vector<std::string>& values, WorkerConfig* config)> apply;
};
const std::vector<Setting>& AllSettings();

// nullopt: there is no variable of that name.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct ConfigSources {
  Settings flags;
  Environment environment;
  std::string user_file;  // instead of the usual one; then it must exist
  std::string system_file = "/etc/lockstep/worker.toml";
};

// Errors are InvalidArgument and name the source: an unknown key or variable of ours (a misspelt
// limit that silently does not hold would be found out by the machine's owner), a value that cannot
// be, no home directory.
absl::StatusOr<WorkerConfig> LoadConfig(const ConfigSources& sources);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CONFIG_H_
