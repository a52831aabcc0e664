// SPDX-License-Identifier: Apache-2.0
//
// Where time goes, for people. Nothing on the state path reads it.
#ifndef LOCKSTEP_ENGINE_STOPWATCH_H_
#define LOCKSTEP_ENGINE_STOPWATCH_H_

#include <chrono>

namespace lockstep::engine {

// Adds the seconds of its life to *seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STOPWATCH_H_
