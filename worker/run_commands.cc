// SPDX-License-Identifier: Apache-2.0
//
// `lockstep-worker run`, and the commands that talk to it.
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/status.h"
#include "base/status_line.h"
#include "worker/command.h"
#include "worker/control_socket.h"
#include "worker/daemon.h"
#include "worker/service_manager.h"
#include "worker/status_text.h"
#include "worker/system_probe.h"

namespace lockstep::worker {
namespace {

// A working thread that shows no life for so long is stuck: a micro-batch takes minutes at most.
constexpr absl::Duration kStuckAfter = absl::Hours(1);

volatile std::sig_atomic_t signaled = 0;

void Handle(int signal) {
  signaled = 1;
  std::signal(signal, SIG_DFL);  // the second one ends the program
}

struct RunArgs {
  std::unique_ptr<ConfigOptions> config;
  bool once = false;
};

std::function<double()> Chance() {
  struct State {
    std::mutex mutex;
    std::mt19937_64 engine{std::random_device()()};
  };
  const auto state = std::make_shared<State>();
  return [state] {
    const std::lock_guard<std::mutex> lock(state->mutex);
    return std::uniform_real_distribution<double>()(state->engine);
  };
}

nlohmann::json Obey(Daemon& daemon, const nlohmann::json& request) {
  const std::string word = CommandOf(request);
  if (word == "pause") {
    daemon.Pause();
  } else if (word == "resume") {
    daemon.Resume();
  } else if (word == "stop") {
    daemon.Stop();
  } else if (word != "status") {
    return {{"error", "expected the command status, pause, resume or stop"}};
  }
  return daemon.Status();
}

absl::StatusOr<ExitCode> Run(const RunArgs& args) {
  const ServiceManager manager = ServiceManager::FromEnvironment();
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  std::signal(SIGINT, Handle);
  std::signal(SIGTERM, Handle);
  // Before threads are started, which inherit it. A system that refuses is no reason not to work.
  if (const absl::Status status = LowerPriority(); !status.ok()) {
    LOCKSTEP_LOG_WARNING("{}", status);
  }
  DaemonOptions options;
  options.config = config;
  options.once = args.once;
  options.connect = [&config](const std::string& address, const Ed25519PrivateKey& key,
                              const std::string& attempt, std::function<bool()> interrupted) {
    return ConnectTo(config, address, key, attempt, std::move(interrupted));
  };
  options.probe = MakeLinuxProbe({.root = "", .disk_folder = config.cache_folder});
  options.random = Chance();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Daemon> daemon,
                            Daemon::Create(std::move(options)));
  absl::Duration told_at = -absl::InfiniteDuration();
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ControlServer> control,
      ControlServer::Start(
          config.runtime_folder,
          [&](const nlohmann::json& request) { return Obey(*daemon, request); },
          [&] {
            if (signaled != 0) daemon->Stop();
            if (CanShowStatusLine()) ShowStatusLine(StatusLine(daemon->Status()));
            const absl::Duration now = RealClock().Monotonic();
            if (manager.watchdog() && now - told_at >= *manager.watchdog() / 3 &&
                daemon->SinceAlive() < kStuckAfter) {
              manager.Notify("WATCHDOG=1");
              told_at = now;
            }
          }));
  manager.Notify("READY=1");
  const absl::Status status = daemon->Run();
  manager.Notify("STOPPING=1");
  control.reset();
  ShowStatusLine("");
  if (args.once && daemon->found_mismatch()) return kExitMismatch;
  LOCKSTEP_RETURN_IF_ERROR(status);
  return signaled != 0 ? kExitInterrupted : kExitOk;
}

struct ControlArgs {
  std::unique_ptr<ConfigOptions> config;
  std::string word;
  bool json = false;
};

absl::StatusOr<ExitCode> Control(const ControlArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json status,
                            AskDaemon(config.runtime_folder, {{"command", args.word}}));
  if (const auto error = status.find("error"); error != status.end() && error->is_string()) {
    return absl::FailedPreconditionError(error->get<std::string>());
  }
  LOCKSTEP_RETURN_IF_ERROR(PrintOut(
      args.json ? status.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                : StatusText(status)));
  return kExitOk;
}

}  // namespace

void AddRunCommand(CLI::App& app, Action* chosen) {
  CLI::App* const command = app.add_subcommand(
      "run",
      "Asks the coordinators for work and does it, until it is told to stop. "
      "Exit codes: 0;\n"
      "130 if a signal ended it; with --once, 3 if its lease ended in a "
      "mismatch, and 1, 4 (network) or\n5 (bad artifact) if it came to nothing.");
  const auto args = std::make_shared<RunArgs>();
  args->config = std::make_unique<ConfigOptions>(*command);
  command->add_flag("--once", args->once, "end after one lease");
  command->callback([args, chosen] { *chosen = [args] { return Run(*args); }; });
}

void AddControlCommands(CLI::App& app, Action* chosen) {
  for (const auto& [word, help] : {std::pair{"status", "What the running daemon is doing."},
                                   {"pause", "Has it pause until resume."},
                                   {"resume", "Has it go on, also after failures in a row."},
                                   {"stop", "Has it give its lease back and end."}}) {
    CLI::App* const command = app.add_subcommand(word, help);
    const auto args = std::make_shared<ControlArgs>();
    args->config = std::make_unique<ConfigOptions>(*command);
    args->word = word;
    command->add_flag("--json", args->json, "print JSON");
    command->callback([args, chosen] { *chosen = [args] { return Control(*args); }; });
  }
}

}  // namespace lockstep::worker
