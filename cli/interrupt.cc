// SPDX-License-Identifier: Apache-2.0
//
// Signal handlers behind cli/interrupt.h.
#include "cli/interrupt.h"

#include <csignal>

namespace lockstep::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void Handle(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void CatchInterrupts() {
  std::signal(SIGINT, Handle);
  std::signal(SIGTERM, Handle);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace lockstep::cli
