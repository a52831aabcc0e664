// SPDX-License-Identifier: Apache-2.0
//
// `lockstep-worker doctor`.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "worker/command.h"
#include "worker/control_socket.h"
#include "worker/doctor.h"
#include "worker/grpc_coordinator.h"
#include "worker/system_probe.h"

namespace lockstep::worker {
namespace {

struct DoctorArgs {
  std::unique_ptr<ConfigOptions> config;
  bool probe = false;
  bool json = false;
};

absl::StatusOr<ExitCode> Doctor(const DoctorArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  // Asking who a coordinator is takes no signature; a key of the moment will do.
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey key, Ed25519PrivateKey::Generate());
  const std::unique_ptr<SystemProbe> probe =
      MakeLinuxProbe({.root = "", .disk_folder = config.cache_folder});
  const std::vector<engine::Finding> findings = DiagnoseWorker(
      {.config = config,
       .probe = probe.get(),
       .ask = [&](const std::string& address) -> absl::StatusOr<ServerInfo> {
         LOCKSTEP_ASSIGN_OR_RETURN(const std::string attempt, RandomId());
         LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                                   ConnectTo(config, address, key, attempt, nullptr));
         return coordinator->Connect();
       },
       .probe_steps = args.probe});
  bool well = true;
  std::string text;
  nlohmann::json list = nlohmann::json::array();
  for (const engine::Finding& finding : findings) {
    well = well && finding.health != engine::Health::kBad;
    const std::string health(engine::HealthName(finding.health));
    list.push_back({{"what", finding.what}, {"health", health}, {"detail", finding.detail}});
    absl::StrAppendFormat(
        &text, "%-22s%-13s%s\n", finding.what, health,
        absl::StrReplaceAll(finding.detail, {{"\n", absl::StrCat("\n", std::string(35, ' '))}}));
  }
  nlohmann::json out = {{"can_work", well}, {"findings", std::move(list)}};
  const absl::StatusOr<nlohmann::json> daemon =
      AskDaemon(config.runtime_folder, {{"command", "status"}});
  out["daemon"] = daemon.ok() ? *daemon : nlohmann::json();
  absl::StrAppend(&text, "\nThis machine can", well ? " " : "not ", "work.");
  absl::StrAppend(&text, " The daemon ",
                  daemon.ok() ? "runs: " + daemon->value("state", std::string("?"))
                              : std::string("does not run"),
                  ".\n");
  LOCKSTEP_RETURN_IF_ERROR(
      PrintOut(args.json ? out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                         : text));
  return well ? kExitOk : kExitFailure;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action* chosen) {
  CLI::App* const command = app.add_subcommand(
      "doctor",
      "Says whether this machine can work: keys, processor, memory, disk, coordinators, and each\n"
      "run that it knows. Exit code 1 if it cannot.");
  const auto args = std::make_shared<DoctorArgs>();
  args->config = std::make_unique<ConfigOptions>(*command);
  command->add_flag("--probe", args->probe, "take the time of a step of each run, too");
  command->add_flag("--json", args->json, "print JSON");
  command->callback([args, chosen] { *chosen = [args] { return Doctor(*args); }; });
}

}  // namespace lockstep::worker
