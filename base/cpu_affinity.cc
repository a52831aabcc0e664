// SPDX-License-Identifier: Apache-2.0
//
// CPU affinity by sched_getaffinity and sched_setaffinity, on Linux. See cpu_affinity.h.

#include "base/cpu_affinity.h"

#include <algorithm>
#include <numeric>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace lockstep {
namespace {

std::vector<int> CountedCpus() {
  std::vector<int> cpus(std::max(1u, std::thread::hardware_concurrency()));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

}  // namespace

#if defined(__linux__)

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return CountedCpus();
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

bool PinThisThread(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

#else

std::vector<int> AllowedCpus() { return CountedCpus(); }

bool PinThisThread(int /*cpu*/) { return false; }

#endif

}  // namespace lockstep
