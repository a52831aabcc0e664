// SPDX-License-Identifier: Apache-2.0
//
// Which CPUs this process may run on, and how to hold a thread on one of them. For the thread pool
// and for benchmarks; results never depend on it. Where the system has no such call (macOS), the
// list is numbered from 0 and pinning reports that it did nothing.

#ifndef LOCKSTEP_BASE_CPU_AFFINITY_H_
#define LOCKSTEP_BASE_CPU_AFFINITY_H_

#include <vector>

namespace lockstep {

// The CPUs that the calling thread may run on, ascending, never empty. In a container or under
// taskset this is shorter than what std::thread::hardware_concurrency() may say.
std::vector<int> AllowedCpus();

// Holds the calling thread on `cpu`. False, with nothing changed, where the system refuses.
bool PinThisThread(int cpu);

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_CPU_AFFINITY_H_
