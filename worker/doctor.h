// SPDX-License-Identifier: Apache-2.0
//
// Whether this machine can be a worker, asked before it asks for work: keys, folders, processor,
// memory, disk, coordinators, the guest's rules, and each run that it has worked on.
#ifndef LOCKSTEP_WORKER_DOCTOR_H_
#define LOCKSTEP_WORKER_DOCTOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/run/doctor.h"
#include "worker/config.h"
#include "worker/coordinator.h"
#include "worker/system_probe.h"

namespace lockstep::worker {

struct DoctorSources {
  WorkerConfig config;
  SystemProbe* probe = nullptr;
  // A coordinator's word on who it is, by address.
  std::function<absl::StatusOr<ServerInfo>(const std::string& address)> ask;
  bool probe_steps = false;  // take the time of a step of each run: minutes for large ones
};

// Findings in the order of what they need of each other. Changes nothing but, with probe_steps,
// spill files for a while.
std::vector<engine::Finding> DiagnoseWorker(const DoctorSources& sources);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DOCTOR_H_
