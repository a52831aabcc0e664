// SPDX-License-Identifier: Apache-2.0
//
// `lockstep-coordinator serve` as a process over a data directory, on loopback, all ports the
// system's choice. The target defines LOCKSTEP_COORDINATOR_PROGRAM. For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_PROGRAM_H_
#define LOCKSTEP_COORDINATOR_TESTING_PROGRAM_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/logging.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {

class Program {
 public:
  Program(const std::string& data, const std::string& origin) {
    int ends[2];
    LOCKSTEP_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    std::vector<std::string> words = {LOCKSTEP_COORDINATOR_PROGRAM, "--log-level", "error"};
    const std::vector<std::string> serve = {
        "serve",       "--data",           data,          "--origin",    origin, "--listen",
        "127.0.0.1:0", "--trainer-listen", "127.0.0.1:0", "--http-port", "0"};
    words.insert(words.end(), serve.begin(), serve.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    LOCKSTEP_CHECK(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
  }
  ~Program() {
    if (pid_ > 0) End(SIGKILL);
    close(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Waits for the line with the ports; false if the program ended before it.
  bool WaitUntilReady() {
    std::string line;
    char c = 0;
    while (read(output_, &c, 1) == 1 && c != '\n') line += c;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return false;
    public_port = json["public_port"];
    trainer_port = json["trainer_port"];
    http_port = json["http_port"];
    return true;
  }
  // Its wait status.
  int End(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  pid_t pid() const { return pid_; }

  int public_port = 0;
  int trainer_port = 0;
  int http_port = 0;

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_PROGRAM_H_
