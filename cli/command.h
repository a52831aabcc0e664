// SPDX-License-Identifier: Apache-2.0
//
// How the commands of `lockstep` are made: each file adds its subcommands to the parser, with what
// they run. A command returns a Status; main() prints an error once and turns it into the exit
// code.
#ifndef LOCKSTEP_CLI_COMMAND_H_
#define LOCKSTEP_CLI_COMMAND_H_

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "base/exit_code.h"

namespace lockstep::cli {

// What a command returns whose exit code says more than its error: main() prints nothing and exits
// so.
absl::Status ExitWith(ExitCode code);

// What the chosen subcommand runs once the command line is parsed.
using Action = std::function<absl::Status()>;

void AddCorpusCommands(CLI::App& app, Action* chosen);
// The subcommands of `lockstep corpus` after ingest: called by AddCorpusCommands.
void AddCorpusShardCommands(CLI::App& corpus, Action* chosen);
void AddCorpusStreamCommands(CLI::App& corpus, Action* chosen);
void AddTokenizerCommands(CLI::App& app, Action* chosen);
// The subcommands of `lockstep tokenizer` that work with a tokenizer file: called by
// AddTokenizerCommands.
void AddTokenizerTextCommands(CLI::App& tokenizer, Action* chosen);
void AddRunCommands(CLI::App& app, Action* chosen);
// diff and plot: called by AddRunCommands.
void AddRunDiffCommands(CLI::App& run, Action* chosen);
void AddTrainCommand(CLI::App& app, Action* chosen);
void AddReplayCommand(CLI::App& app, Action* chosen);
void AddDoctorCommand(CLI::App& app, Action* chosen);
void AddCheckpointCommands(CLI::App& app, Action* chosen);
void AddEvalCommand(CLI::App& app, Action* chosen);
void AddVerifyCommand(CLI::App& app, Action* chosen);
void AddBundleCommand(CLI::App& app, Action* chosen);
// publish, and artifacts sync.
void AddPublishCommands(CLI::App& app, Action* chosen);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_COMMAND_H_
