// SPDX-License-Identifier: Apache-2.0
//
// How many threads a command takes if nobody says.
#ifndef LOCKSTEP_CLI_THREADS_H_
#define LOCKSTEP_CLI_THREADS_H_

#include <algorithm>
#include <thread>

namespace lockstep::cli {

// As many as there are CPUs, as far as the system tells; 1 otherwise.
inline int DefaultThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_THREADS_H_
