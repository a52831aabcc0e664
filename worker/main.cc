// SPDX-License-Identifier: Apache-2.0
//
// lockstep-worker: parses the command line, runs one command, reports its error.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/logging.h"
#include "worker/command.h"
#include "worker/grpc_coordinator.h"

namespace lockstep::worker {

ConfigOptions::ConfigOptions(CLI::App& command) {
  command.add_option("--config", file_,
                     "configuration file instead of $XDG_CONFIG_HOME/lockstep/worker.toml");
  for (const Setting& setting : AllSettings()) {
    std::string flag = "--" + setting.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    // --coordinator URL is as good as --coordinators URL,URL.
    if (setting.list) flag += "," + flag.substr(0, flag.size() - 1);
    const auto take = [this, name = setting.name](const CLI::results_t& values) {
      given_[name] = values;
      return true;
    };
    CLI::Option* const option = command.add_option(flag, take, setting.help);
    if (setting.list) {
      option->expected(1, -1)->delimiter(',');
    } else {
      option->expected(1);
    }
  }
}

absl::StatusOr<WorkerConfig> ConfigOptions::Load() const {
  return LoadConfig({.flags = given_,
                     .environment = [](const std::string& name) -> std::optional<std::string> {
                       const char* const value = std::getenv(name.c_str());
                       if (value == nullptr) return std::nullopt;
                       return std::string(value);
                     },
                     .user_file = file_});
}

absl::Status PrintOut(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return absl::ErrnoToStatus(errno, "cannot write to standard output");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Coordinator>> ConnectTo(const WorkerConfig& config,
                                                       const std::string& address,
                                                       const Ed25519PrivateKey& key,
                                                       const std::string& attempt,
                                                       std::function<bool()> interrupted) {
  GrpcCoordinatorOptions options;
  options.address = address;
  options.ca_file = config.ca_file;
  options.attempt_id = attempt;
  options.interrupted = std::move(interrupted);
  return ConnectGrpc(key, options);
}

}  // namespace lockstep::worker

int main(int argc, char** argv) {
  namespace worker = lockstep::worker;
  CLI::App app(
      "lockstep-worker: recomputes steps of training runs on spare hardware, and signs what it "
      "found.\nEvery command explains itself with --help, and prints JSON with --json.",
      "lockstep-worker");
  app.require_subcommand(1);
  app.set_version_flag("--version", LOCKSTEP_VERSION);
  std::string log_level;
  std::string log_format;
  app.add_option("--log-level", log_level, "debug, info, warning, error or off");
  app.add_option("--log-format", log_format, "text or json");
  worker::Action action;
  worker::AddRunCommand(app, &action);
  worker::AddControlCommands(app, &action);
  worker::AddDoctorCommand(app, &action);
  worker::AddKeysCommands(app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? lockstep::kExitOk : lockstep::kExitUsage;
  }
  if (const absl::Status status = lockstep::SetUpLogging(log_level, log_format); !status.ok()) {
    std::fprintf(stderr, "lockstep-worker: %s\n", std::string(status.message()).c_str());
    return lockstep::kExitUsage;
  }
  const absl::StatusOr<lockstep::ExitCode> code = action();
  if (code.ok()) return *code;
  std::fprintf(stderr, "lockstep-worker: %s\n", std::string(code.status().message()).c_str());
  // Of flags and configuration, which are all that people say to it.
  if (absl::IsInvalidArgument(code.status())) return lockstep::kExitUsage;
  return lockstep::ExitCodeOf(code.status());
}
