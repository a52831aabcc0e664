// SPDX-License-Identifier: Apache-2.0
//
// The daemon's status (Daemon::Status) as people read it.
#ifndef LOCKSTEP_WORKER_STATUS_TEXT_H_
#define LOCKSTEP_WORKER_STATUS_TEXT_H_

#include <string>

#include "nlohmann/json.hpp"

namespace lockstep::worker {

// What `lockstep-worker status` prints: a few lines.
std::string StatusText(const nlohmann::json& status);

// What `lockstep-worker run` shows on a terminal: one line, the most important first.
std::string StatusLine(const nlohmann::json& status);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STATUS_TEXT_H_
