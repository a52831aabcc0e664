// SPDX-License-Identifier: Apache-2.0
//
// A peer in a process of its own, which is asked by the line and answers each line when it is done.
#ifndef LOCKSTEP_BENCH_PEER_PROCESS_H_
#define LOCKSTEP_BENCH_PEER_PROCESS_H_

#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>

namespace lockstep::bench {

class PeerProcess {
 public:
  // command: for the shell. A peer that is not installed ends at once, and answers nothing.
  explicit PeerProcess(const std::string& command);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // The line that it answers, without its end; nullopt if there is no such peer here.
  std::optional<std::string> Ask(const std::string& request);

 private:
  pid_t pid_ = 0;
  std::FILE* requests_ = nullptr;
  std::FILE* answers_ = nullptr;
};

// The command of a script of bench/peers under Debian's PyTorch. With OpenBLAS's OpenMP flavour,
// whose threads are PyTorch's own: with Debian's default one the number of threads is not obeyed.
std::string PyTorchCommand(const std::string& script, int threads);

}  // namespace lockstep::bench

#endif  // LOCKSTEP_BENCH_PEER_PROCESS_H_
