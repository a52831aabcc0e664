// SPDX-License-Identifier: Apache-2.0
//
// A directory of a test's own, and a child process to be killed in. For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_SCRATCH_H_
#define LOCKSTEP_COORDINATOR_TESTING_SCRATCH_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "gtest/gtest.h"

namespace lockstep::coordinator {

class Scratch {
 public:
  Scratch() {
    // In memory where there is such a place: these tests make and remove files by the thousand.
    const std::string memory = "/dev/shm/";
    std::string name = (access(memory.c_str(), W_OK) == 0 ? memory : ::testing::TempDir()) +
                       "lockstep_coordinator_XXXXXX";
    root_ = std::filesystem::canonical(mkdtemp(name.data()));
  }
  ~Scratch() { std::filesystem::remove_all(root_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // `name` beneath the directory; the name has no trailing slash.
  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  void Clear() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directory(root_);
  }
  void Copy(const std::string& from, const std::string& to) const {
    std::filesystem::remove_all(Path(to));
    std::filesystem::copy(Path(from), Path(to), std::filesystem::copy_options::recursive);
  }

 private:
  std::string root_;
};

// Runs `body` in a child process and returns its exit status; body's own if it returns.
inline int RunInChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_SCRATCH_H_
