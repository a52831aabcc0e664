// SPDX-License-Identifier: Apache-2.0
//
// A test program that starts itself once more, as a process to be killed. Its main() looks at its
// arguments. The target defines LOCKSTEP_EMULATOR, what programs of this machine type are run by
// ("": nothing). For tests only.
#ifndef LOCKSTEP_BASE_TESTING_CHILD_PROCESS_H_
#define LOCKSTEP_BASE_TESTING_CHILD_PROCESS_H_

#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/logging.h"

namespace lockstep {

inline pid_t StartChild(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  if (*LOCKSTEP_EMULATOR != '\0') words.emplace_back(LOCKSTEP_EMULATOR);
  words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  LOCKSTEP_CHECK(error == 0, "cannot start {}: error {}", words[0], error);
  return child;
}

// Its wait status.
inline int WaitForChild(pid_t child) {
  int status = -1;
  LOCKSTEP_CHECK(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_TESTING_CHILD_PROCESS_H_
