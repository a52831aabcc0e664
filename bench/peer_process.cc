// SPDX-License-Identifier: Apache-2.0
//
// Two pipes and a process.
#include "bench/peer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/logging.h"

extern char** environ;

namespace lockstep::bench {

PeerProcess::PeerProcess(const std::string& command) {
  int to_child[2];
  int from_child[2];
  LOCKSTEP_CHECK(pipe2(to_child, O_CLOEXEC) == 0 && pipe2(from_child, O_CLOEXEC) == 0,
                 "no pipes for the peer");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], 1);
  const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
  LOCKSTEP_CHECK(
      posix_spawn(&pid_, "/bin/sh", &actions, nullptr, const_cast<char**>(argv), environ) == 0,
      "cannot start the peer");
  posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  signal(SIGPIPE, SIG_IGN);  // a peer that has ended is found by its silence
  requests_ = fdopen(to_child[1], "w");
  answers_ = fdopen(from_child[0], "r");
}

PeerProcess::~PeerProcess() {
  std::fclose(requests_);
  std::fclose(answers_);
  waitpid(pid_, nullptr, 0);
}

std::optional<std::string> PeerProcess::Ask(const std::string& request) {
  std::fprintf(requests_, "%s\n", request.c_str());
  std::fflush(requests_);
  char line[256];
  if (std::fgets(line, sizeof(line), answers_) == nullptr) return std::nullopt;
  std::string answer = line;
  if (answer.ends_with('\n')) answer.pop_back();
  return answer;
}

std::string PyTorchCommand(const std::string& script, int threads) {
  return absl::StrCat(
      "unset OMP_WAIT_POLICY; "
      "export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp OMP_NUM_THREADS=",
      threads, " OPENBLAS_NUM_THREADS=", threads,
      "; exec /usr/bin/python3 -B " LOCKSTEP_SOURCE_DIR "/bench/peers/", script, " 2>/dev/null");
}

}  // namespace lockstep::bench
