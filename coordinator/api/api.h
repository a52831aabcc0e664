// SPDX-License-Identifier: Apache-2.0
//
// The public JSON API, /api/v1: everything public about a network's runs, read-only, over the
// coordinator's HTTP server. Its specification: docs/api.md.

#ifndef LOCKSTEP_COORDINATOR_API_API_H_
#define LOCKSTEP_COORDINATOR_API_API_H_

#include <functional>
#include <string>

#include "coordinator/core/coordinator.h"
#include "coordinator/http/router.h"

namespace lockstep::coordinator {

struct ApiOptions {
  std::string version;      // of the program
  std::string event_epoch;  // EventHub's
  // Where artifacts are, and where workers go: known once all servers are up. Any thread.
  std::function<std::string()> artifact_url;
  std::function<std::string()> worker_url;
};

// Serves all paths below /api/. The coordinator outlives the server.
void ServeApi(const Coordinator& coordinator, const ApiOptions& options, Router& router);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_API_H_
