// SPDX-License-Identifier: Apache-2.0
//
// PyTorch as a peer: a script of bench/peers in a process of its own, which is asked by the line
// and answers each line when it is done.
#ifndef LOCKSTEP_BENCH_PYTORCH_PEER_H_
#define LOCKSTEP_BENCH_PYTORCH_PEER_H_

#include <sys/types.h>

#include <cstdio>
#include <string>

namespace lockstep::bench {

class PyTorchPeer {
 public:
  // script: its name in bench/peers. With OpenBLAS's OpenMP flavour, whose threads are PyTorch's
  // own: with Debian's default one the number of threads is not obeyed.
  PyTorchPeer(const std::string& script, int threads);
  ~PyTorchPeer();
  PyTorchPeer(const PyTorchPeer&) = delete;
  PyTorchPeer& operator=(const PyTorchPeer&) = delete;

  // False if there is no PyTorch here.
  bool Ask(const std::string& request);

 private:
  pid_t pid_ = 0;
  std::FILE* requests_ = nullptr;
  std::FILE* answers_ = nullptr;
};

}  // namespace lockstep::bench

#endif  // LOCKSTEP_BENCH_PYTORCH_PEER_H_
