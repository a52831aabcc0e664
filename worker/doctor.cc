// SPDX-License-Identifier: Apache-2.0
//
// The questions, one by one.
#include "worker/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/directory.h"
#include "engine/memory_plan.h"
#include "engine/run/run_folder.h"
#include "kernels/isa.h"
#include "worker/attester.h"
#include "worker/keys.h"

namespace lockstep::worker {
namespace {

using engine::Finding;
using engine::Health;

Finding Good(std::string what, std::string detail) {
  return {.what = std::move(what), .health = Health::kGood, .detail = std::move(detail)};
}
Finding Bad(std::string what, std::string detail) {
  return {.what = std::move(what), .health = Health::kBad, .detail = std::move(detail)};
}

std::string GiB(uint64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

Finding Folders(const WorkerConfig& config) {
  for (const std::string& folder : {config.data_folder, config.cache_folder}) {
    if (const absl::Status status = MakeDirectories(folder); !status.ok()) {
      return Bad("folders", std::string(status.message()));
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      return Bad("folders", absl::StrCat(folder, ": expected to be able to write there"));
    }
  }
  return Good("folders", absl::StrCat(config.data_folder, ", ", config.cache_folder));
}

Finding Keys(const WorkerConfig& config) {
  const absl::StatusOr<KeyFolder> keys = KeyFolder::Open(config.data_folder + "/keys");
  if (!keys.ok()) return Bad("keys", std::string(keys.status().message()));
  const absl::StatusOr<Ed25519PrivateKey> key = keys->Worker();
  if (!key.ok()) return Bad("keys", std::string(key.status().message()));
  const absl::StatusOr<std::vector<std::string>> entries = keys->Entries();
  if (!entries.ok()) return Bad("keys", std::string(entries.status().message()));
  return Good("keys", absl::StrCat("worker ", key->public_key().ToHex(), ", ", entries->size(),
                                   entries->empty()
                                       ? " entries; unless an operator has made it known already, "
                                         "`lockstep-worker keys certify` does"
                                       : " entries to tell"));
}

Finding Processor() {
  const absl::StatusOr<kernels::Isa> isa = kernels::ChooseIsa();
  if (!isa.ok()) return Bad("processor", std::string(isa.status().message()));
  return Good("processor", BackendClass(*isa));
}

Finding Memory(const WorkerConfig& config) {
  const std::optional<int64_t> available = engine::MemoryForRun();
  if (config.memory_bytes > 0) {
    if (available && static_cast<uint64_t>(*available) < config.memory_bytes) {
      return Bad("memory", absl::StrCat("memory_gib allows ", GiB(config.memory_bytes), "; ",
                                        GiB(static_cast<uint64_t>(*available)), " are free"));
    }
    return Good("memory", GiB(config.memory_bytes));
  }
  if (!available) return Bad("memory", "the system does not say what is free: set memory_gib");
  return Good("memory", GiB(static_cast<uint64_t>(*available)));
}

Finding Disk(const WorkerConfig& config, const MachineState& machine) {
  if (!machine.disk_free_bytes) {
    return {.what = "disk", .health = Health::kNotChecked, .detail = "the system does not say"};
  }
  const std::string detail = absl::StrCat(GiB(*machine.disk_free_bytes), " free, of which ",
                                          GiB(config.guest.disk_free_bytes_min), " stay so; ",
                                          GiB(config.disk_bytes), " of artifacts at most");
  return *machine.disk_free_bytes < config.guest.disk_free_bytes_min ? Bad("disk", detail)
                                                                     : Good("disk", detail);
}

// A pause is no illness.
Finding Guest(const WorkerConfig& config, const MachineState& machine) {
  const GuestDecision decision = DecideGuest(config.guest, machine, PauseReason::kNone);
  return Good("guest", decision.paused()
                           ? absl::StrCat("would pause now: ", PauseReasonName(decision.reason),
                                          ": ", decision.detail)
                           : "would work now");
}

Finding AskCoordinator(const DoctorSources& sources, const std::string& address) {
  const absl::StatusOr<ServerInfo> server = sources.ask(address);
  if (!server.ok()) return Bad("coordinator", std::string(server.status().message()));
  return Good("coordinator", absl::StrCat(address, ": log ", server->log_key.ToText()));
}

void Runs(const DoctorSources& sources, std::vector<Finding>* findings) {
  const WorkerConfig& config = sources.config;
  const absl::StatusOr<std::vector<std::string>> names =
      ListDirectory(config.cache_folder + "/runs");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(config.cache_folder, "/runs/", name);
    const absl::StatusOr<engine::RunFolder> run = engine::RunFolder::Open(path);
    if (!run.ok()) continue;
    engine::DoctorOptions options;
    options.threads = config.threads > 0
                          ? config.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    if (config.memory_bytes > 0) {
      options.memory_bytes = static_cast<int64_t>(config.memory_bytes);
    }
    options.spill_folder = path;
    options.probe = sources.probe_steps;
    // Without its folder: data and start are fetched for a lease, and not lacking before.
    const engine::DoctorReport report = engine::Diagnose(run->manifest(), nullptr, options);
    for (const Finding& finding : report.findings) {
      findings->push_back({.what = absl::StrCat("run ", name.substr(0, 8), ": ", finding.what),
                           .health = finding.health,
                           .detail = finding.detail});
    }
  }
}

}  // namespace

std::vector<Finding> DiagnoseWorker(const DoctorSources& sources) {
  std::vector<Finding> findings;
  findings.push_back(Folders(sources.config));
  findings.push_back(Keys(sources.config));
  findings.push_back(Processor());
  findings.push_back(Memory(sources.config));
  const MachineState machine = sources.probe->Read();
  findings.push_back(Disk(sources.config, machine));
  findings.push_back(Guest(sources.config, machine));
  for (const std::string& address : sources.config.coordinators) {
    findings.push_back(AskCoordinator(sources, address));
  }
  if (sources.config.coordinators.empty()) {
    findings.push_back(Bad("coordinator", "none is given"));
  }
  Runs(sources, &findings);
  return findings;
}

}  // namespace lockstep::worker
