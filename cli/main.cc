// SPDX-License-Identifier: Apache-2.0
//
// The `lockstep` tool: parses the command line, runs one command, reports its error.
#include <cstdio>
#include <string>

#include "base/logging.h"
#include "cli/command.h"
#include "cli/interrupt.h"

namespace lockstep::cli {

namespace {

constexpr char kExitPayload[] = "lockstep/exit-code";

// Of what a command returned: as ExitWith says, or by the kind of error.
ExitCode CodeOf(const absl::Status& status) {
  if (const auto code = status.GetPayload(kExitPayload)) {
    return static_cast<ExitCode>(std::stoi(std::string(*code)));
  }
  return ExitCodeOf(status);
}

}  // namespace

absl::Status ExitWith(ExitCode code) {
  absl::Status status = absl::UnknownError("");
  status.SetPayload(kExitPayload, absl::Cord(std::to_string(code)));
  return status;
}

}  // namespace lockstep::cli

int main(int argc, char** argv) {
  namespace cli = lockstep::cli;
  CLI::App app(
      "lockstep: language-model training that anyone can check.\n"
      "Every command explains itself with --help, and prints JSON with --json.",
      "lockstep");
  app.require_subcommand(1);
  app.set_version_flag("--version", LOCKSTEP_VERSION);
  std::string log_level;
  app.add_option("--log-level", log_level, "debug, info, warning, error or off");
  cli::Action action;
  cli::AddCorpusCommands(app, &action);
  cli::AddTokenizerCommands(app, &action);
  cli::AddRunCommands(app, &action);
  cli::AddTrainCommand(app, &action);
  cli::AddReplayCommand(app, &action);
  cli::AddDoctorCommand(app, &action);
  cli::AddCheckpointCommands(app, &action);
  cli::AddEvalCommand(app, &action);
  cli::AddVerifyCommand(app, &action);
  cli::AddBundleCommand(app, &action);
  cli::AddPublishCommands(app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? lockstep::kExitOk : lockstep::kExitUsage;
  }
  if (const absl::Status status = lockstep::SetUpLogging(log_level, ""); !status.ok()) {
    std::fprintf(stderr, "lockstep: %s\n", std::string(status.message()).c_str());
    return lockstep::kExitUsage;
  }
  cli::CatchInterrupts();
  const absl::Status status = action();
  if (!status.ok() && !status.message().empty()) {
    std::fprintf(stderr, "lockstep: %s\n", std::string(status.message()).c_str());
  }
  return cli::CodeOf(status);
}
