// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks of this program by name, for its main function.
#ifndef LOCKSTEP_BENCH_REGISTRY_H_
#define LOCKSTEP_BENCH_REGISTRY_H_

#include <map>
#include <string>

#include "bench/harness.h"

namespace lockstep::bench {

struct Entry {
  std::string what;  // one line for --list
  void (*run)(Bench&);
};

std::map<std::string, Entry>& Registry();

}  // namespace lockstep::bench

#endif  // LOCKSTEP_BENCH_REGISTRY_H_
