// SPDX-License-Identifier: Apache-2.0
//
// lockstep-bench: runs the benchmarks named on the command line, or all. Called by scripts/bench.
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "base/cpu_affinity.h"
#include "bench/registry.h"

int main(int argc, char** argv) {
  using lockstep::bench::Registry;
  CLI::App app(
      "Measures lockstep against its peers. A ratio is ours divided by the peer's, both measured "
      "in turns in this run.");
  std::vector<std::string> names;
  std::string only;
  bool json = false;
  bool list = false;
  app.add_option("name", names, "benchmarks to run; none means all");
  app.add_option("--only", only, "only the cases whose names have this text in them");
  app.add_flag("--json", json, "one JSON object a line");
  app.add_flag("--list", list, "name the benchmarks and stop");
  CLI11_PARSE(app, argc, argv);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as the programs do
  if (list) {
    for (const auto& [name, entry] : Registry())
      std::printf("%-20s %s\n", name.c_str(), entry.what.c_str());
    return 0;
  }
  if (names.empty()) {
    for (const auto& [name, entry] : Registry()) names.push_back(name);
  }
  for (const std::string& name : names) {
    if (Registry().count(name) == 0) {
      std::fprintf(stderr, "no benchmark is called \"%s\"; --list names them\n", name.c_str());
      return 2;
    }
  }
  for (const std::string& name : names) {
    lockstep::bench::Bench bench(name, only, json);
    Registry().at(name).run(bench);
  }
  return 0;
}
