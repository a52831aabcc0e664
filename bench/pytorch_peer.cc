// SPDX-License-Identifier: Apache-2.0
//
// Two pipes and a process.
#include "bench/pytorch_peer.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/logging.h"

extern char** environ;

namespace lockstep::bench {

PyTorchPeer::PyTorchPeer(const std::string& script, int threads) {
  int to_child[2];
  int from_child[2];
  LOCKSTEP_CHECK(pipe2(to_child, O_CLOEXEC) == 0 && pipe2(from_child, O_CLOEXEC) == 0,
                 "no pipes for the peer");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], 1);
  const std::string command = absl::StrCat(
      "unset OMP_WAIT_POLICY; "
      "export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp OMP_NUM_THREADS=",
      threads, " OPENBLAS_NUM_THREADS=", threads,
      "; exec /usr/bin/python3 " LOCKSTEP_SOURCE_DIR "/bench/peers/", script, " 2>/dev/null");
  const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
  LOCKSTEP_CHECK(
      posix_spawn(&pid_, "/bin/sh", &actions, nullptr, const_cast<char**>(argv), environ) == 0,
      "cannot start the peer");
  posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  signal(SIGPIPE, SIG_IGN);  // a peer that is not installed ends at once
  requests_ = fdopen(to_child[1], "w");
  answers_ = fdopen(from_child[0], "r");
}

PyTorchPeer::~PyTorchPeer() {
  std::fclose(requests_);
  std::fclose(answers_);
  waitpid(pid_, nullptr, 0);
}

bool PyTorchPeer::Ask(const std::string& request) {
  std::fprintf(requests_, "%s\n", request.c_str());
  std::fflush(requests_);
  char answer[16];
  return std::fgets(answer, sizeof(answer), answers_) != nullptr;
}

}  // namespace lockstep::bench
