// SPDX-License-Identifier: Apache-2.0
//
// How the commands of `lockstep-worker` are made: each file adds its subcommands to the parser,
// with what they run. main() prints an error once and turns it into the exit code.
#ifndef LOCKSTEP_WORKER_COMMAND_H_
#define LOCKSTEP_WORKER_COMMAND_H_

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "worker/config.h"
#include "worker/coordinator.h"

namespace lockstep::worker {

// What a command ends with.
using Action = std::function<absl::StatusOr<ExitCode>()>;

// The options of AllSettings and --config, of every command that needs the configuration.
class ConfigOptions {
 public:
  explicit ConfigOptions(CLI::App& command);
  absl::StatusOr<WorkerConfig> Load() const;

 private:
  std::string file_;
  Settings given_;
};

// One line of JSON, or `text`, to standard output.
absl::Status PrintOut(const std::string& text);

// A coordinator at an address, by the configuration. `key` outlives it.
absl::StatusOr<std::unique_ptr<Coordinator>> ConnectTo(const WorkerConfig& config,
                                                       const std::string& address,
                                                       const Ed25519PrivateKey& key,
                                                       const std::string& attempt,
                                                       std::function<bool()> interrupted);

void AddRunCommand(CLI::App& app, Action* chosen);
// status, pause, resume, stop.
void AddControlCommands(CLI::App& app, Action* chosen);
void AddDoctorCommand(CLI::App& app, Action* chosen);
void AddKeysCommands(CLI::App& app, Action* chosen);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMMAND_H_
